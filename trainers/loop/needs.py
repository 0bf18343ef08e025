"""Optional packages that a run needs, checked before anything is played or written."""

from __future__ import annotations

import importlib.util

from turngym.agents.models.attention import require_attention
from turngym.agents.models.loading import chosen_device
from turngym.agents.models.quantized import require_quantizer
from turngym.agents.models.vllm.config import require_vllm
from turngym.envs.vector.backends.remote.ray_session import import_ray
from turngym.errors import ConfigError, missing_extra
from turngym.trainers.engine.optimizer import eight_bit_adamw
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.settings.config import TrainConfig


def require_own_sampler(config: TrainConfig, ranks: Ranks) -> None:
    """Raise if several ranks were to share what generates for one process.

    Raises:
        ConfigError: There are several, and each is to run vLLM inside of its own process.
    """
    if ranks.size > 1 and config.rollout.sampler == "vllm" and not config.rollout.ray.workers:
        raise ConfigError(
            f"{ranks.size} ranks cannot each run vLLM inside of their process, where it makes ranks of its own: pass "
            "--rollout.sampler transformers, let --rollout.ray.workers sample, or train in one process."
        )


def require_packages(config: TrainConfig) -> None:
    """Raise if a package that the settings require is not installed.

    Raises:
        MissingExtra: The message names the package and the extra.
        ConfigError: The optimiser's state cannot be kept where it is asked to be, or the attention does not work there.
    """
    require_attention(config.attention, chosen_device(config.device))
    if config.rollout.needs_vllm:
        require_vllm()
    if config.rollout.ray.workers:
        import_ray()
    if config.update.optimizer == "adamw_8bit":
        eight_bit_adamw()
    if config.update.offload and chosen_device(config.device).type == "cpu":
        raise ConfigError("the model is on the CPU, so nothing can be offloaded to it: leave out --update.offload.")
    if config.quantize != "none" and config.update.sharding == "full":
        raise ConfigError(
            f"weights in {config.quantize} cannot be divided over ranks: leave out --update.sharding full."
        )
    require_quantizer(config.quantize)
    if config.lora_rank and importlib.util.find_spec("peft") is None:
        raise missing_extra("low-rank adapters", "peft", "train")
