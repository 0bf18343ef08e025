"""Weights through files in a folder that servers see under the same path: always possible, slow for large models."""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.sync.core import Weights, WeightSync

_FILE_BYTES = 4 * 2**30
_KEPT = 2


class FolderSync(WeightSync):
    """Writes weights into a folder from which servers reload them.

    Args:
        folder: The folder.
        timeout: Seconds for each step.
    """

    file_name = "model"
    """Beginning of the names of its files."""

    def __init__(self, folder: Path, timeout: float) -> None:
        super().__init__(timeout)
        self.folder = folder.absolute()
        self._written: deque[Path] = deque()

    def publish(self, label: str, weights: Weights) -> None:
        """Write weights; those of the last two names are kept, for servers that are still reading."""
        target = self.folder / label
        write_weights(target, weights, self.file_name)
        self._written.append(target)
        while len(self._written) > _KEPT:
            shutil.rmtree(self._written.popleft(), ignore_errors=True)

    def load(self, server: PolicyClient, label: str) -> None:
        """Let a server read the files."""
        server.call_workers("reload_weights", self.timeout, weights_path=str(self.folder / label))

    def close(self) -> None:
        """Remove the files."""
        while self._written:
            shutil.rmtree(self._written.popleft(), ignore_errors=True)


def write_weights(target: Path, weights: Weights, name: str = "model") -> None:
    """Write weights into a new folder, in files of some GiB; it appears when it is whole.

    Args:
        target: The folder.
        weights: The weights.
        name: Beginning of the files' names; the first one has no number.
    """
    temporary = target.with_name(target.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for number, part in enumerate(_parts(weights)):
        file = f"{name}-{number:05d}.safetensors" if number else f"{name}.safetensors"
        save_file(part, temporary / file, {"format": "pt"})
    temporary.rename(target)


def _parts(weights: Weights) -> Iterator[dict[str, Tensor]]:
    """Yield weights in parts of some GiB; files may not share memory between tensors."""
    part: dict[str, Tensor] = {}
    size = 0
    for name, tensor in weights.items():
        part[name] = tensor.detach().cpu().contiguous().clone()
        size += tensor.numel() * tensor.element_size()
        if size >= _FILE_BYTES:
            yield part
            part, size = {}, 0
    if part:
        yield part


class AdapterSync(FolderSync):
    """Writes adapters into a folder from which servers load them, in place of those before.

    Args:
        folder: The folder.
        timeout: Seconds for each step.
        settings: Settings of the adapters, as peft writes them.
    """

    file_name = "adapter_model"

    def __init__(self, folder: Path, timeout: float, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, timeout)
        self.settings = dict(settings)

    def publish(self, label: str, weights: Weights) -> None:
        """Write the weights of adapters, under peft's names, with their settings."""
        super().publish(label, weights)
        (self.folder / label / "adapter_config.json").write_text(json.dumps(self.settings), "utf8")

    def load(self, server: PolicyClient, label: str) -> None:
        """Let a server load the adapter under the name that it samples with."""
        body = {"lora_name": server.model, "lora_path": str(self.folder / label), "load_inplace": True}
        server.tell("/v1/load_lora_adapter", body, self.timeout)


class NativeSync(FolderSync):
    """Writes weights into a folder, and tells servers each file of it.

    Servers need the backend of :mod:`turngym.agents.models.rollout_servers.vllm_plugin`, which vLLM finds where
    turngym is installed.
    """

    def load(self, server: PolicyClient, label: str) -> None:
        """Let a server read the files."""
        server.post("/init_weight_transfer_engine", {"init_info": {}}, self.timeout)
        server.post("/start_weight_update", None, self.timeout)
        for file in sorted((self.folder / label).glob("*.safetensors")):
            server.post("/update_weights", {"update_info": {"path": str(file)}}, self.timeout)
        server.post("/finish_weight_update", {"weight_version": label}, self.timeout)
