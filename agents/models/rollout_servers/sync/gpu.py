"""Weights from GPU to GPU by vLLM's own protocol: nccl between GPUs, ipc on one. Read in vLLM 0.32, not run yet.

All that depends on vLLM's trainer side, whose names have changed often, is in this file. vLLM must be installed next to
the learner as well.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.launcher import free_port
from turngym.agents.models.rollout_servers.sync.core import Weights, WeightSync
from turngym.agents.models.rollout_servers.sync.folder import FolderSync
from turngym.agents.models.vllm.weights import HEAD

Kind: TypeAlias = Literal["nccl", "ipc"]


class GpuSync(WeightSync):
    """Sends weights from the learner's GPU while it waits; servers that return later read files.

    Args:
        kind: ``nccl`` or ``ipc``.
        files: For servers that return. Files are written only while one is missing, so a server that returns before the
            next weight sync waits for it.
        is_one_missing: Returns whether a server is missing.
    """

    def __init__(self, kind: Kind, files: FolderSync, is_one_missing: Callable[[], bool]) -> None:
        super().__init__(files.timeout)
        self.kind = kind
        self.files = files
        self.is_one_missing = is_one_missing
        self._weights: Weights = {}
        self._live = ""
        self._on_disk = ""
        self._lock = threading.Lock()
        self._engines: WeakKeyDictionary[PolicyClient, Any] = WeakKeyDictionary()

    def publish(self, label: str, weights: Weights) -> None:
        """Take the weights, which must not change until :meth:`settle`."""
        self._weights, self._live = sent_once(weights), label
        if self.is_one_missing():
            self.files.publish(label, weights)
            self._on_disk = label

    def settle(self) -> None:
        """The weights may change from now on."""
        self._weights, self._live = {}, ""

    def load(self, server: PolicyClient, label: str) -> None:
        """Send the weights to a server, one server after the other."""
        if label == self._on_disk and label != self._live:
            self.files.load(server, label)
            return
        with self._lock:
            if label != self._live:
                raise CallFailed("transfer", "it gets weights with the next weight sync")
            try:
                with _on_device_of(self._weights):
                    self._engine(server).send_weights()
            except (RuntimeError, OSError, ValueError) as error:
                self._engines.pop(server, None)
                raise CallFailed("transfer", repr(error)[:300]) from error

    def _engine(self, server: PolicyClient) -> Any:
        """Return the trainer's side of the connection to a server."""
        if server not in self._engines:
            from vllm.distributed.weight_transfer import HTTPVLLMWeightSyncClient, WeightTransferTrainerFactory

            self._engines[server] = WeightTransferTrainerFactory.trainer_init(
                self._init(server),
                client=HTTPVLLMWeightSyncClient(server.url, self.timeout),
                source=_source(lambda: self._weights),
            )
        return self._engines[server]

    def _init(self, server: PolicyClient) -> Any:
        if self.kind == "ipc":
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo

            return IPCTrainerInitInfo(rank=0)
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        workers = int(server.get("/get_world_size", self.timeout).get("world_size", 1))
        return NCCLTrainerInitInfo(
            master_address=_own_address(server.url), master_port=free_port(), world_size=1 + workers, rank=0
        )

    def close(self) -> None:
        """Remove files."""
        self.files.close()


def sent_once(weights: Weights) -> Weights:
    """Return the weights without the output layer where it is the embedding, which it is for vLLM as well.

    >>> embedding = torch.ones(2, 2)
    >>> list(sent_once({"model.embed_tokens.weight": embedding, "lm_head.weight": embedding}))
    ['model.embed_tokens.weight']
    """
    others = {each.data_ptr() for name, each in weights.items() if name != HEAD}
    return {name: each for name, each in weights.items() if name != HEAD or each.data_ptr() not in others}


def _on_device_of(weights: Weights) -> AbstractContextManager[object]:
    """Make the GPU of the weights the current one; each thread starts with GPU 0."""
    device = next(iter(weights.values())).device
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _own_address(url: str) -> str:
    parts = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "127.0.0.1", parts.port or 80))  # sends nothing
        return str(probe.getsockname()[0])


def _source(weights: Callable[[], Weights]) -> Any:
    """Return weights as vLLM's trainer side reads them: the same names in the same order, each time again."""
    from vllm.distributed.weight_transfer import ParamMeta, WeightSource

    class Source(WeightSource):  # type: ignore[misc]
        """The weights that are synced now."""

        def metadata(self) -> list[Any]:
            """Return name, format and shape of each."""
            return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in weights().items()]

        def __iter__(self) -> Iterator[tuple[str, Tensor]]:
            yield from ((name, tensor.detach()) for name, tensor in weights().items())

    return Source()
