"""The settings of weight updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias

from turngym.errors import ConfigError
from turngym.options import Amount, Natural, Options, Positive, Rate, at_least, below

LayoutName: TypeAlias = Literal["auto", "rows", "packed", "tree"]
OnContext: TypeAlias = Literal["train", "mask", "drop"]
_OnCutOff: TypeAlias = Literal["train", "mask"]
OldLogprobs: TypeAlias = Literal["sampler", "trainer"]
_ScheduleName: TypeAlias = Literal["constant", "linear", "cosine"]
_OptimizerName: TypeAlias = Literal["adamw", "adamw_8bit"]
_ShardingName: TypeAlias = Literal["none", "full"]
_Beta: TypeAlias = Annotated[float, at_least(0), below(1)]
_DEFAULT_TOKENS: Mapping[str, tuple[int, int]] = {
    "auto": (2048, 16_384),
    "rows": (2048, 16_384),
    "packed": (1024, 8192),
    "tree": (2048, 8192),
}
"""Layout -> tokens on a CPU, on other devices."""


def default_micro_batch_tokens(device: str, layout: str = "rows") -> int:
    """Return the default number of tokens per forward pass, by device type and layout.

    Masks over all pairs of tokens make large packed micro-batches slow.

    >>> default_micro_batch_tokens("cpu"), default_micro_batch_tokens("cuda", "packed")
    (2048, 8192)
    """
    on_cpu, elsewhere = _DEFAULT_TOKENS.get(layout, _DEFAULT_TOKENS["rows"])
    return on_cpu if device == "cpu" else elsewhere


class Exclusion(NamedTuple):
    """Handling of truncated episodes and completions; see :class:`UpdateConfig`."""

    on_context: OnContext = "train"
    on_truncated: _OnCutOff = "train"
    on_overlong: _OnCutOff = "train"


EVERYTHING = Exclusion()
"""Truncated episodes and completions are trained on."""


class UpdateConfig(Options):
    """Updates of the weights.

    Args:
        learning_rate: Learning rate of the policy.
        critic_learning_rate: Learning rate of the critic, if there is one.
        warmup_updates: Policy updates with linear warm-up of the learning rate. The critic has its own warm-up of equal
            length, which starts earlier if a method trains the critic first.
        schedule: Learning rate schedule after the warm-up: ``constant``, or ``linear`` or ``cosine`` decay to 0 over
            all iterations of the run.
        optimizer: ``adamw``, or ``adamw_8bit`` of the package bitsandbytes, with 2 instead of 8 bytes of state per
            weight.
        beta1: AdamW's beta1 (momentum). In multi-agent games 0 is better: momentum makes players cycle around an
            equilibrium.
        beta2: AdamW's beta2.
        epsilon: AdamW's epsilon.
        weight_decay: AdamW's weight decay.
        decay: Parameters with weight decay: ``matrices`` (without norms and biases) or ``all``.
        offload: Keep float32 master weights and optimiser state in CPU memory.
        max_grad_norm: Gradient norm for clipping; 0 for none.
        epochs: Passes over the batch of an iteration.
        minibatches: Updates per pass; distinct sequences are distributed at random.
        max_micro_batch_tokens: Tokens per forward pass, padding included; affects memory and speed, not results. 0
            depends on layout and device: for ``auto`` 2048 on a CPU, because of its caches, else 16384. Tokens that
            attend over more than 4096 count proportionally more. Logits do not count: at most one chunk of them is
            held.
        layout: Batch layout; affects speed, not results. ``rows`` pads each sequence, ``packed`` concatenates them,
            ``tree`` computes shared prefixes once, ``auto`` uses ``tree`` if it saves at least a tenth of the tokens of
            ``rows`` and the model and its attention support it, otherwise ``rows``.
        gradient_checkpointing: Recompute activations in the backward pass: a fraction of the memory for about a third
            more time.
        compile: Compile the decoder layers for the training pass (``torch.compile``; results differ by rounding): up to
            twice as fast on a GPU, after half a minute of compiling at the first update.
        sharding: Sharding across ranks: ``none`` replicates weights, gradients and optimiser state, ``full`` shards
            them (FSDP), with less memory and more communication. Results differ only by rounding.
        shard_group: Number of ranks that hold one copy of the model together with sharding ``full``, a divisor of the
            number of ranks; groups are copies of each other (HSDP). 0 for the ranks of a machine.
        on_context: Handling of an episode whose next prompt did not fit: ``train`` treats it as truncated, ``mask``
            keeps it in the group statistics but not in the loss, ``drop`` excludes it from both, so its group shrinks.
        on_truncated: Handling of other truncated episodes, mostly by the turn limit: ``train``, or ``mask``, which
            keeps them in the group statistics but not in the loss.
        on_overlong: Handling of a completion that reached ``max_new_tokens`` without an end token: ``train``, or
            ``mask``, which excludes its turn from the loss (overlong filtering).
        old_logprobs: Source of the old log-probabilities: ``sampler`` uses those returned by sampling, ``trainer``
            recomputes them before the first update of an iteration, so that rounding differences between sampler and
            trainer do not affect ratios.
    """

    learning_rate: Rate = 3e-4
    critic_learning_rate: Rate = 1e-3
    warmup_updates: Natural = 0
    schedule: _ScheduleName = "constant"
    optimizer: _OptimizerName = "adamw"
    beta1: _Beta = 0.9
    beta2: _Beta = 0.99
    epsilon: Rate = 1e-8
    weight_decay: Amount = 0.0
    decay: Literal["matrices", "all"] = "matrices"
    offload: bool = False
    max_grad_norm: float = 1.0
    epochs: Positive = 1
    minibatches: Positive = 1
    max_micro_batch_tokens: Natural = 0
    layout: LayoutName = "auto"
    gradient_checkpointing: bool = False
    compile: bool = False
    sharding: _ShardingName = "none"
    shard_group: Natural = 0
    on_context: OnContext = "train"
    on_truncated: _OnCutOff = "train"
    on_overlong: _OnCutOff = "train"
    old_logprobs: OldLogprobs = "sampler"

    def check(self) -> None:
        """Check what depends on several settings."""
        if self.sharding == "full" and self.compile:
            raise ConfigError("layers that are divided over ranks are not compiled: leave out --update.compile.")
        if self.sharding == "full" and (self.offload or self.optimizer != "adamw"):
            with_it = "--update.offload" if self.offload else f"--update.optimizer {self.optimizer}"
            raise ConfigError(f"sharding full divides the state of adamw over the ranks: leave out {with_it}.")
        if self.shard_group and (self.sharding == "none" or self.shard_group == 1):
            fix = "--update.sharding full" if self.shard_group > 1 else "--update.sharding none"
            raise ConfigError(f"shard_group {self.shard_group} shards nothing: leave it out, and pass {fix}.")

    @property
    def exclusion(self) -> Exclusion:
        """Handling of truncated episodes and completions."""
        return Exclusion(self.on_context, self.on_truncated, self.on_overlong)
