"""A backend for vLLM's own protocol of weights that reads files; vLLM finds it by its entry point in each process."""

from __future__ import annotations

from typing import Any

FILE = "turngym_file"
"""Its name: ``vllm serve MODEL --weight-transfer-config '{"backend": "turngym_file"}'``."""


def register() -> None:
    """Make the backend known to vLLM; may be called twice.

    A version of vLLM without the protocol continues without the backend.
    """
    try:
        from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
    except ImportError:
        return
    if FILE not in getattr(WeightTransferEngineFactory, "_registry", {}):
        WeightTransferEngineFactory.register_engine(FILE, _engine())


def _engine() -> Any:
    from dataclasses import dataclass

    from safetensors.torch import load_file
    from vllm.distributed.weight_transfer import base
    from vllm.model_executor.model_loader import reload

    @dataclass
    class Init(base.WeightTransferInitInfo):  # type: ignore[misc]
        """Nothing has to be agreed on."""

    @dataclass
    class Update(base.WeightTransferUpdateInfo):  # type: ignore[misc]
        """A file of weights."""

        path: str

    class FileEngine(base.WeightTransferEngine):  # type: ignore[misc]
        """Loads files into the layers of the model."""

        init_info_cls, update_info_cls = Init, Update

        def init_transfer_engine(self, init_info: Any) -> None:
            """There is nothing to connect to."""

        def start_weight_update(self) -> None:
            """Let layers be loaded again."""
            reload.initialize_layerwise_reload(self.model)

        def receive_weights(self, update_info: Any) -> None:
            """Load a file."""
            self.model.load_weights(iter(load_file(update_info.path).items()))

        def finish_weight_update(self) -> None:
            """Pack the layers as they are computed with."""
            reload.finalize_layerwise_reload(self.model, self.model_config)

        def shutdown(self) -> None:
            """There is nothing to close."""

    return FileEngine
