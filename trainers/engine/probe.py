"""Gap between the log-probabilities of sampler and trainer, measured on a probe before training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from turngym.agents.models.generate import Generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.policy_statistics import gap_figures
from turngym.trainers.engine.scoring import score

PROBE = "The lamp was lit at dusk, and eleven ships went by before the keeper had counted to ten. "
_TOKENS = 32
_PROMPTS = 8


def probe_gap(model: LanguageModel, generate: Generate, temperature: float = 1.0) -> dict[str, float]:
    """Return mean, 99th percentile and maximum of the gap over the tokens sampled for a probe.

    Args:
        model: Precision of the trainer.
        generate: The sampler.
        temperature: The sampler's temperature.
    """
    ids = tuple(model.tokenizer.encode(PROBE * 4, add_special_tokens=False))
    prompts: Sequence[Sequence[int]] = [ids[number:] for number in range(_PROMPTS)]
    uniforms: list[NDArray[np.float64]] = [
        turn_uniforms(0, 0, number, 0, _TOKENS, "probe") for number in range(_PROMPTS)
    ]
    found = generate(prompts, uniforms, Sampling(temperature, max_new_tokens=_TOKENS))
    gaps = []
    with torch.no_grad():
        for prompt, completion in zip(prompts, found, strict=True):
            reads = [Read(len(prompt) - 1 + k, token, k, 0, 0) for k, token in enumerate(completion.ids)]
            row = Row.of((*prompt, *completion.ids), reads)
            scored = score(model.network, [row], temperature).logprobs.flatten().cpu()
            gaps.append((scored - torch.tensor(completion.logprobs)).abs())
    return gap_figures(torch.cat(gaps))


def mismatch_warning(model: LanguageModel, sampler: str, trainer: str, temperature: float = 1.0) -> str:
    """Return a warning if the sampler's data type differs from the trainer's; empty otherwise.

    Args:
        model: Precision of the trainer; generation uses another network or server.
        sampler: Format of the sampler's weights, ``auto`` for the trainer's.
        trainer: Format of the trainer's weights.
        temperature: The sampler's temperature.
    """
    if model.generate is None or sampler in ("auto", trainer):
        return ""
    gap = probe_gap(model, model.generate, temperature)
    return (
        f"the sampler computes in {sampler} and the trainer in {trainer}: on a probe their log-probabilities differ by "
        f"{gap['mean']:.2g} on average, {gap['p99']:.2g} at the 99th percentile and {gap['max']:.2g} at most. Pass the "
        "same format for both, or --update.old-logprobs trainer."
    )
