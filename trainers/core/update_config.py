"""The settings of weight updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from turngym.errors import ConfigError

OnContext: TypeAlias = Literal["train", "mask", "drop"]
OldLogprobs: TypeAlias = Literal["sampler", "trainer"]


@dataclass(frozen=True)
class UpdateConfig:
    """How weights are updated.

    Args:
        learning_rate: Step size of the policy.
        critic_learning_rate: Step size of the critic, where there is one.
        warmup_updates: Updates of the policy over which its step size rises from 0. The critic's rises over as many of
            its own, which begin earlier where a method trains the critic first.
        momentum: Weight of the earlier gradients in AdamW's running mean. In games between seats 0 is better: momentum
            makes players run in circles around an equilibrium.
        weight_decay: AdamW's decay.
        max_grad_norm: Gradients longer than this are scaled down; 0 turns that off.
        epochs: Passes over the batch of an iteration.
        minibatches: Updates a pass; distinct sequences are dealt out at random.
        max_micro_batch_tokens: Padded tokens that go through the network together; memory and speed, not maths.
            0 means 2048 on a CPU, because of its caches, else 16384.
        gradient_checkpointing: Keep only the input of each layer for the backward pass, which computes the rest again:
            a fraction of the memory for about a third more time.
        on_context: How to handle an episode whose next prompt did not fit: ``train`` uses it like every truncated
            episode, ``mask`` leaves it in the statistics of its group and out of the loss, ``drop`` leaves it out of
            both, so that its group shrinks.
        old_logprobs: Where the log-probabilities come from that ratios are taken against: ``sampler`` takes those that
            sampling returned, ``trainer`` computes them with the trained network before the first update of an
            iteration. With the latter, rounding that differs between sampler and trainer moves no ratio away from 1.
    """

    learning_rate: float = 3e-4
    critic_learning_rate: float = 1e-3
    warmup_updates: int = 0
    momentum: float = 0.9
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    epochs: int = 1
    minibatches: int = 1
    max_micro_batch_tokens: int = 0
    gradient_checkpointing: bool = False
    on_context: OnContext = "train"
    old_logprobs: OldLogprobs = "sampler"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "critic_learning_rate"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in (0, 1), got {getattr(self, name)}.")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum must lie in [0, 1), got {self.momentum}.")
        for name, least in (("epochs", 1), ("minibatches", 1), ("max_micro_batch_tokens", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if self.on_context not in ("train", "mask", "drop"):
            raise ConfigError(f"on_context must be train, mask or drop, got {self.on_context!r}.")
        if self.old_logprobs not in ("sampler", "trainer"):
            raise ConfigError(f"old_logprobs must be sampler or trainer, got {self.old_logprobs!r}.")
