"""Policy servers of tiny models, in this process, and requests to them."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.policy_server import Engine, PolicyServer
from turngym.agents.models.policy_server.weights import ServedWeights
from turngym.trainers.engine.adapters import adapter_tensors, lora_config


@contextmanager
def served(model: LanguageModel, folder: Path | None = None, token: str = "", **options: Any) -> Iterator[PolicyServer]:
    engine = Engine(model, ServedWeights(model, "small", folder), cache_tokens=20_000, **options)
    server = PolicyServer(engine, token=token)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        engine.close()


def call(server: PolicyServer, path: str, body: Any = None, method: str = "", **headers: str) -> tuple[int, Any]:
    """The status and the answer; bytes are sent as they are."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, raw, headers)
        with connection.getresponse() as response:
            return response.status, json.loads(response.read() or b"{}")
    finally:
        connection.close()


def ask(server: PolicyServer, ids: list[int], seed: int = 0, **sampling: Any) -> dict[str, Any]:
    settings = {"temperature": 0.7, "max_tokens": 12, "logprobs": 0, "seed": seed, "ignore_eos": True, **sampling}
    status, found = call(server, "/inference/v1/generate", {"token_ids": ids, "sampling_params": settings})
    assert status == 200, found
    return dict(found)


def write_adapter(model: LanguageModel, folder: Path, rank: int, alpha: int = 0) -> None:
    """Write a model's adapters as peft does."""
    folder.mkdir()
    save_file(adapter_tensors(model.network), folder / "adapter_model.safetensors", {"format": "pt"})
    lora_config(rank, alpha, "all-linear", False).save_pretrained(str(folder))
