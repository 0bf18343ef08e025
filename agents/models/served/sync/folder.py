"""Weights through files in a folder that servers see under the same path: always possible, slow for large models."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from turngym.agents.models.served.client import PolicyClient
from turngym.agents.models.served.sync.core import Weights, WeightSync

_FILE_BYTES = 4 * 2**30
_KEPT = 2


class FolderSync(WeightSync):
    """Writes weights into a folder from which servers reload them.

    Args:
        folder: The folder.
        timeout: Seconds for each step.
    """

    def __init__(self, folder: Path, timeout: float) -> None:
        super().__init__(timeout)
        self.folder = folder.absolute()
        self._written: deque[Path] = deque()

    def publish(self, label: str, weights: Weights) -> None:
        """Write weights; those of the last two names are kept, for servers that are still reading."""
        target = self.folder / label
        write_weights(target, weights)
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


def write_weights(target: Path, weights: Weights) -> None:
    """Write weights into a new folder, in files of some GiB; it appears when it is whole.

    Args:
        target: The folder.
        weights: The weights.
    """
    temporary = target.with_name(target.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    part: dict[str, Tensor] = {}
    number = size = 0
    for name, tensor in weights.items():
        part[name] = tensor.detach().cpu().contiguous().clone()  # files may not share memory between tensors
        size += tensor.numel() * tensor.element_size()
        if size >= _FILE_BYTES:
            save_file(part, temporary / f"model-{number:05d}.safetensors", {"format": "pt"})
            part, number, size = {}, number + 1, 0
    if part:
        save_file(part, temporary / f"model-{number:05d}.safetensors", {"format": "pt"})
    temporary.rename(target)
