"""Settings that bound memory, which may be changed on resume."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from turngym.trainers.core.update_config import default_micro_batch_tokens
from turngym.trainers.settings.config import TrainConfig

_MAY_CHANGE: Mapping[str, tuple[str, ...]] = {
    "update": ("max_micro_batch_tokens", "gradient_checkpointing", "sharding", "shard_group"),
    "rollout": ("num_envs",),
}
"""Settings that bound memory and affect results only by rounding, by section."""


def memory_settings(config: TrainConfig) -> dict[str, dict[str, Any]]:
    """Return the settings that may be changed on resume.

    >>> memory_settings(TrainConfig())["rollout"]
    {'num_envs': 0}
    """
    return {part: {name: getattr(getattr(config, part), name) for name in names} for part, names in _MAY_CHANGE.items()}


def with_memory_settings(stored: TrainConfig, given: TrainConfig) -> TrainConfig:
    """Return a run's settings with the memory settings of another one.

    >>> from dataclasses import replace
    >>> given = TrainConfig(seed=1, update=replace(TrainConfig().update, gradient_checkpointing=True))
    >>> found = with_memory_settings(TrainConfig(), given)
    >>> found.seed, found.update.gradient_checkpointing
    (0, True)
    """
    parts = {
        part: dataclasses.replace(getattr(stored, part), **values) for part, values in memory_settings(given).items()
    }
    return dataclasses.replace(stored, **parts)


def memory_advice(config: TrainConfig, phase: str, device: str) -> tuple[str, ...]:
    """Return advice for a run that ran out of memory.

    Args:
        config: The settings of the run.
        phase: Phase of the run.
        device: Type of the device that the model is on.
    """
    if phase in ("rollout", "evaluation"):
        most = config.rollout.num_envs or config.rollout.groups * config.rollout.group_size
        fewer = f"continue with --resume --rollout.num-envs {max(most // 2, 1)} (it is {most}): fewer episodes at once"
        return (fewer, "shorter prompts in a new run: --rollout.prompt.max-prompt-tokens")
    found = []
    if not config.update.gradient_checkpointing:
        found.append("continue with --resume --update.gradient-checkpointing: layers keep their input only")
    most = config.update.max_micro_batch_tokens or default_micro_batch_tokens(device, config.update.layout)
    found.append(f"continue with --resume --update.max-micro-batch-tokens {max(most // 2, 1)} (it is {most})")
    if not config.lora_rank:
        found.append("--lora-rank 32 in a new run: gradients and states of the optimiser for adapters alone")
    return tuple(found)
