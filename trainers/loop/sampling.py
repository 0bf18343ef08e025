"""What generates while a run gathers its episodes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.loop.vllm_rollouts import vllm_rollouts
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import DTYPES


def sampling(config: TrainConfig, model: LanguageModel, source: str) -> AbstractContextManager[object]:
    """Return the context in which a policy generates as the settings say.

    Args:
        config: Settings of the run.
        model: The policy.
        source: A folder or hub name with a model of its shape.
    """
    if config.rollout.sampler == "transformers":
        return nullcontext()
    engine = config.rollout.vllm
    if engine.dtype == "auto":
        engine = replace(engine, dtype=DTYPES[config.precision])
    return vllm_rollouts(model, source, engine)
