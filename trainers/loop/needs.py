"""Optional packages that a run needs, checked before anything is played or written."""

from __future__ import annotations

import importlib.util

from turngym.agents.models.vllm_config import require_vllm
from turngym.errors import missing_extra
from turngym.trainers.settings.config import TrainConfig


def require_packages(config: TrainConfig) -> None:
    """Raise if a package that the settings require is not installed.

    Raises:
        MissingExtra: The message names the package and the extra.
    """
    if config.rollout.sampler == "vllm":
        require_vllm()
    if config.lora_rank and importlib.util.find_spec("peft") is None:
        raise missing_extra("low-rank adapters", "peft", "train")
