"""Weights through vLLM's own protocol: start, updates, finish. Here as files; :mod:`.gpu` sends them between GPUs."""

from __future__ import annotations

from turngym.agents.models.served.client import PolicyClient
from turngym.agents.models.served.sync.folder import FolderSync


class NativeSync(FolderSync):
    """Writes weights into a folder, and tells servers each file of it.

    Servers need the backend of :mod:`turngym.agents.models.served.vllm_plugin`, which vLLM finds where turngym is
    installed.
    """

    def load(self, server: PolicyClient, label: str) -> None:
        """Let a server read the files."""
        server.post("/init_weight_transfer_engine", {"init_info": {}}, self.timeout)
        server.post("/start_weight_update", None, self.timeout)
        for file in sorted((self.folder / label).glob("*.safetensors")):
            server.post("/update_weights", {"update_info": {"path": str(file)}}, self.timeout)
        server.post("/finish_weight_update", {"weight_version": label}, self.timeout)
