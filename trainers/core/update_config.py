"""The settings of weight updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from turngym.errors import ConfigError

LayoutName: TypeAlias = Literal["rows", "packed", "tree"]
OnContext: TypeAlias = Literal["train", "mask", "drop"]
OnCutOff: TypeAlias = Literal["train", "mask"]
OldLogprobs: TypeAlias = Literal["sampler", "trainer"]
ScheduleName: TypeAlias = Literal["constant", "linear", "cosine"]
OptimizerName: TypeAlias = Literal["adamw", "adamw_8bit"]
ShardingName: TypeAlias = Literal["none", "full"]
_DEFAULT_TOKENS: Mapping[str, tuple[int, int]] = {"rows": (2048, 16_384), "packed": (1024, 8192), "tree": (1024, 4096)}
"""Layout -> tokens on a CPU, and on other devices."""
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "layout": get_args(LayoutName),
    "on_context": get_args(OnContext),
    "on_truncated": get_args(OnCutOff),
    "on_overlong": get_args(OnCutOff),
    "old_logprobs": get_args(OldLogprobs),
    "schedule": get_args(ScheduleName),
    "optimizer": get_args(OptimizerName),
    "decay": ("matrices", "all"),
    "sharding": get_args(ShardingName),
}


def default_micro_batch_tokens(device: str, layout: str = "rows") -> int:
    """Return the tokens that go through a network together unless the settings say it, by type of device and layout.

    Masks over all pairs of tokens make large packed micro-batches slow.

    >>> default_micro_batch_tokens("cpu"), default_micro_batch_tokens("cuda"), default_micro_batch_tokens("cpu", "tree")
    (2048, 16384, 1024)
    """
    on_cpu, elsewhere = _DEFAULT_TOKENS.get(layout, _DEFAULT_TOKENS["rows"])
    return on_cpu if device == "cpu" else elsewhere


class Exclusion(NamedTuple):
    """What becomes of episodes and completions that were cut off; see :class:`UpdateConfig`."""

    on_context: OnContext = "train"
    on_truncated: OnCutOff = "train"
    on_overlong: OnCutOff = "train"


EVERYTHING = Exclusion()
"""Everything that was cut off is trained on."""


@dataclass(frozen=True)
class UpdateConfig:
    """How weights are updated.

    Args:
        learning_rate: Step size of the policy.
        critic_learning_rate: Step size of the critic, where there is one.
        warmup_updates: Updates of the policy over which its step size rises from 0. The critic's rises over as many of
            its own, which begin earlier where a method trains the critic first.
        schedule: Step sizes after the warm-up: ``constant``, or falling to 0 in a ``linear`` or ``cosine`` way over all
            iterations of the run, the policy's over the updates of the policy.
        optimizer: ``adamw``, or ``adamw_8bit`` of the package bitsandbytes, whose state takes 2 bytes a weight instead
            of 8.
        beta1: Weight of the earlier gradients in AdamW's running mean, its momentum. In games between seats 0 is
            better: momentum makes players run in circles around an equilibrium.
        beta2: Weight of the earlier squared gradients in AdamW's running mean.
        epsilon: Added to the root of that mean.
        weight_decay: AdamW's decay.
        decay: What the weight decay acts on: ``matrices``, which leaves norms and biases out, or ``all`` weights.
        offload: Keep float32 copies of the trained weights and the optimiser's state in the memory of the CPU.
        max_grad_norm: Gradients longer than this are scaled down; 0 turns that off.
        epochs: Passes over the batch of an iteration.
        minibatches: Updates a pass; distinct sequences are dealt out at random.
        max_micro_batch_tokens: Tokens that go through the network together, padding included; memory and speed, not
            maths. 0 is by layout and device: for ``rows`` 2048 on a CPU, because of its caches, else 16384.
            Tokens that attend over more than 4096 ones count as many times more. Logits do not count: no more than a
            chunk of them is held.
        layout: How sequences go through the network; speed, not maths. ``rows`` gives each a row of its own with
            padding, ``packed`` puts them one after another, ``tree`` computes what they begin with once.
        gradient_checkpointing: Keep only the input of each layer for the backward pass, which computes the rest again:
            a fraction of the memory for about a third more time.
        sharding: What several ranks do with the weights, gradients and optimiser state: ``none`` gives each rank all of
            them, ``full`` an equal part (FSDP), which takes less memory and more communication. Results differ by
            rounding alone.
        on_context: How to handle an episode whose next prompt did not fit: ``train`` uses it like every truncated
            episode, ``mask`` leaves it in the statistics of its group and out of the loss, ``drop`` leaves it out of
            both, so that its group shrinks.
        on_truncated: How to handle an episode that was cut off otherwise, mostly by the turn limit: ``train``, or
            ``mask``, which leaves it in the statistics of its group and out of the loss.
        on_overlong: How to handle a completion that reached ``max_new_tokens`` without an end token: ``train``, or
            ``mask``, which leaves its turn out of the loss in the same way (overlong filtering).
        old_logprobs: Where the log-probabilities come from that ratios are taken against: ``sampler`` takes those that
            sampling returned, ``trainer`` computes them with the trained network before the first update of an
            iteration, or in its only one. With the latter, rounding that differs between sampler and trainer moves no
            ratio away from 1.
    """

    learning_rate: float = 3e-4
    critic_learning_rate: float = 1e-3
    warmup_updates: int = 0
    schedule: ScheduleName = "constant"
    optimizer: OptimizerName = "adamw"
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decay: Literal["matrices", "all"] = "matrices"
    offload: bool = False
    max_grad_norm: float = 1.0
    epochs: int = 1
    minibatches: int = 1
    max_micro_batch_tokens: int = 0
    layout: LayoutName = "rows"
    gradient_checkpointing: bool = False
    sharding: ShardingName = "none"
    on_context: OnContext = "train"
    on_truncated: OnCutOff = "train"
    on_overlong: OnCutOff = "train"
    old_logprobs: OldLogprobs = "sampler"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "critic_learning_rate"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in (0, 1), got {getattr(self, name)}.")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}.")
        if not 0 < self.epsilon < 1:
            raise ConfigError(f"epsilon must lie in (0, 1), got {self.epsilon}.")
        at_least_0 = ("warmup_updates", "weight_decay", "max_micro_batch_tokens")
        for name, least in (("epochs", 1), ("minibatches", 1), *((name, 0) for name in at_least_0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                words = f"{', '.join(known[:-1])} or {known[-1]}"
                raise ConfigError(f"{name} must be {words}, got {getattr(self, name)!r}.")

        if self.sharding == "full" and (self.offload or self.optimizer != "adamw"):
            with_it = "--update.offload" if self.offload else f"--update.optimizer {self.optimizer}"
            raise ConfigError(f"sharding full divides the state of adamw over the ranks: leave out {with_it}.")

    @property
    def exclusion(self) -> Exclusion:
        """What becomes of episodes and completions that were cut off."""
        return Exclusion(self.on_context, self.on_truncated, self.on_overlong)
