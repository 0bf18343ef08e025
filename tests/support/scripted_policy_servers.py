"""A server of a policy without a network: tokens follow from prompt, seed and weights, and it fails as told."""

import hashlib
import json
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

VOCABULARY = 50


def token_of(prompt: Sequence[int], seed: int, weights: str) -> int:
    """The token that weights sample behind a prompt."""
    return hashlib.sha256(f"{list(prompt)} {seed} {weights}".encode()).digest()[0] % VOCABULARY


class ScriptedServer(ThreadingHTTPServer):
    """Answers as vLLM does. ``mode`` says how it fails, if it does.

    Modes: ``error`` (status 500), ``garbage`` (no JSON), ``silent`` (no answer for as long as the
    mode lasts), ``stale`` (the name of other weights),
    ``mixed`` (weights changed in the middle), ``deaf`` (takes new weights and continues with the old ones), ``moved``
    (a redirect), ``long`` (more tokens than were asked for), ``keeps`` (does not drop prefixes). A server that is
    ``stale`` or ``mixed`` recovers when it is given weights.
    """

    daemon_threads = True

    def __init__(self, key: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = key
        self.mode = ""
        self.weights = "none"
        self.label = "default"
        self.seconds = 0.0
        self.poison: list[int] = []
        self.paused = False
        self.prompts: list[tuple[int, ...]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.running = self.most_running = 0
        self.sampled_while_paused = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""

    def generated(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt, params = body["token_ids"], body["sampling_params"]
        with self.lock:
            self.prompts.append(tuple(prompt))
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.sampled_while_paused += self.paused
        try:
            time.sleep(self.seconds)
        finally:
            with self.lock:
                self.running -= 1
        count = params["max_tokens"] + (self.mode == "long")
        ids = [token_of(prompt, params["seed"] + k, self.weights) for k in range(count)]
        label = "other" if self.mode == "stale" else self.label
        spans = [{"version": label, "start": 0, "end": count}]
        if self.mode == "mixed":
            spans = [{"version": "other", "start": 0, "end": 1}, {"version": label, "start": 1, "end": count}]
        parts = [{"token_id": token, "logprob": -math.log(VOCABULARY)} for token in ids]
        choice = {
            "token_ids": ids,
            "finish_reason": "length",
            "weight_versions": spans,
            "logprobs": {"content": parts},
        }
        return {"choices": [choice]}


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(json.loads(content) if content else {})

    def _answer(self, body: dict[str, Any]) -> None:
        server, path = self.server, urlsplit(self.path).path
        server.calls.append((self.path, body))
        end = time.monotonic() + 120
        while server.mode == "silent" and time.monotonic() < end:
            time.sleep(0.01)
        if server.mode == "garbage" and path.startswith("/inference"):
            return self._send(200, b"<html>")
        if server.mode == "fails" and path.startswith("/inference"):
            return self._send(500, b'{"error": "scripted"}')
        if server.mode == "moved":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            return None
        if server.mode == "error" or (server.poison and body.get("token_ids") == server.poison):
            return self._send(500, b'{"error": "scripted"}')
        if server.key and path.startswith("/inference") and self.headers["Authorization"] != f"Bearer {server.key}":
            return self._send(401, b'{"error": "Unauthorized"}')
        if path == "/v1/load_lora_adapter":
            return self._send(200, b"Success: LoRA adapter added")  # as vLLM does
        return self._send(200, json.dumps(self._content(path, body)).encode())

    def _content(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        match path:
            case "/inference/v1/generate":
                return server.generated(body)
            case "/v1/models":
                return {"data": [{"id": "policy", "max_model_len": 512}]}
            case "/weight_info":
                return {"weight_version": server.label}
            case "/pause" | "/resume":
                server.paused = path == "/pause"
            case "/collective_rpc":
                if server.mode != "deaf":
                    server.weights = body["kwargs"]["weights_path"]
            case "/reset_prefix_cache":
                return {"success": server.mode != "keeps"}
            case "/update_weight_version":
                server.label = body["new_version"]
                server.mode = "" if server.mode in ("stale", "mixed") else server.mode
        return {}

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def scripted_servers(count: int = 1, key: str = "") -> Iterator[list[ScriptedServer]]:
    """Run some servers until the context is left."""
    servers = [ScriptedServer(key) for _ in range(count)]
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield servers
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
