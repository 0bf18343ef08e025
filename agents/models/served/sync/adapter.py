"""Low-rank adapters through files: their weights alone, for servers that have the model below them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.agents.models.served.client import PolicyClient
from turngym.agents.models.served.sync.core import Weights
from turngym.agents.models.served.sync.folder import FolderSync


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
