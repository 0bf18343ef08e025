"""Settings of the warm-up."""

from __future__ import annotations

from typing import Literal, TypeAlias

from turngym.options import Natural, Options, Positive, Rate, Share

WarmupPrecision: TypeAlias = Literal["fp32", "bf16"]


class SupervisedConfig(Options):
    """Supervised learning on a fixed set of demonstrations.

    ``max_micro_batch_tokens`` and ``gradient_checkpointing`` of the updates also apply.

    Args:
        demonstrations: Number of expert episodes, on train instances sampled with replacement; 0 skips the warm-up.
        log: Log whose solved episodes replace the expert's, at most ``demonstrations``: of ATIF, Inspect AI, verifiers
            or Harbor, or the folder of an evaluation.
        epochs: Passes over the demonstrations.
        learning_rate: Learning rate.
        batch_size: Distinct sequences per update.
        observation_weight: Loss weight of observed tokens, relative to 1 for sampled ones. Above 0 the model also
            learns to predict observations, as in pretraining, and learns sooner to copy words from them.
        clip: Above 0, proximal fine-tuning (PSFT, arXiv 2508.17784; there 0.28): the gradient of a token is that of its
            probability ratio to the last reference pass, and 0 once the ratio exceeds 1 plus this.
        clip_every: Updates from one reference pass to the next, with ``clip`` above 0.
        models: Models to warm up: only the ``embedded`` one, or ``any``.
        precision: Precision of matrix products, ``fp32`` or ``bf16``; weights, gradients and optimiser state are
            float32 either way. With 135 M parameters ``bf16`` is 1.6 times as fast on a CPU with AVX-512 bf16.
    """

    demonstrations: Natural = 300
    log: str = ""
    epochs: Natural = 20
    learning_rate: Rate = 2e-3
    batch_size: Positive = 64
    observation_weight: Share = 0.0
    clip: Share = 0.0
    clip_every: Positive = 8
    models: Literal["embedded", "any"] = "embedded"
    precision: WarmupPrecision = "fp32"
