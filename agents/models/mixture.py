"""Sampling from the geometric mixture of two networks with one vocabulary, such as a policy and its reference.

Nash-MD (Munos et al. 2023, arXiv 2312.00886) plays against the policy with next-token probabilities in proportion to
``p ** (1 - weight) * q ** weight``. Log-probabilities of its completions are those of the mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from turngym.agents.models.completion import Completion
from turngym.agents.models.generate import Blend, Memo, generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import memo_pays
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError
from turngym.seeding import stream

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def mixed_model(
    model: LanguageModel,
    other: nn.Module,
    weight: float,
    ready: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> LanguageModel:
    """Return a model that samples from the mixture of a model and another network.

    Its draws are independent of those of the model with the same random numbers. Every call computes its prompts again.

    Args:
        model: The model.
        other: Network with the same vocabulary; may be the model's own.
        weight: Exponent of the other network's probabilities, in [0, 1].
        ready: Returns the context in which the other network computes.

    Raises:
        ConfigError: The weight is out of range, the model reads images, or its network does not generate itself.
    """
    if not 0 <= weight <= 1:
        raise ConfigError(f"the weight of a mixture must be from 0 to 1, got {weight}.")
    if model.pictures is not None or model.generate is not None:
        what = "reads images" if model.pictures is not None else "is sampled elsewhere: --rollout.sampler transformers"
        raise ConfigError(
            f"mixtures are sampled with the networks of text models in this process; {model.name} {what}."
        )
    memo, others = (Memo() if memo_pays(model.network) else Memo(0) for _ in range(2))

    def generate_mixed(
        prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        fresh = [_independent(each) for each in uniforms]
        blend = Blend(cast("PreTrainedModel", other), weight, others, ready)
        return generate(model.network, prompts, fresh, sampling, model.stop_ids, memo=memo, blend=blend)

    return LanguageModel(model.network, model.tokenizer, f"{model.name} mixed", generate_mixed)


def _independent(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return as many other random numbers, which are the same for the same ones."""
    return stream("mixture", *uniforms[:2].view(np.uint64).tolist()).random(len(uniforms))
