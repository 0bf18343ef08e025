"""Twin critics of whole turns: the value of a state, and of a state with an action, both as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from turngym.trainers.engine.critics.joint import JointCritic


class Transition(NamedTuple):
    """One turn: state, action, reward, and the state after it; None where nothing followed."""

    state: str
    action: str
    reward: float
    following: str | None


class TwinCritic(nn.Module):
    """Two independent estimates of Q(s, a) and of V(s), small networks over hashed words in double precision.

    Args:
        buckets: Size of the hash tables.
        width: Size of the hidden layers.
    """

    def __init__(self, buckets: int, width: int) -> None:
        super().__init__()
        self.action_values = nn.ModuleList(_random_head(JointCritic(buckets, width, seed), seed) for seed in (0, 1))
        self.state_values = nn.ModuleList(_random_head(JointCritic(buckets, width, seed), seed) for seed in (2, 3))
        self.double()

    def q(self, states: Sequence[str], actions: Sequence[str]) -> Float[Tensor, "turn twin"]:
        """Return both values of each state with an action."""
        texts = with_action(states, actions)
        return torch.stack([critic(texts) for critic in self.action_values], -1)

    def v(self, states: Sequence[str]) -> Float[Tensor, "turn twin"]:
        """Return both values of each state."""
        return torch.stack([critic(states) for critic in self.state_values], -1)

    @torch.no_grad()
    def move_towards(self, other: TwinCritic, rate: float) -> None:
        """Take over a share of the weights of another critic, as a slow copy of it does."""
        for mine, theirs in zip(self.parameters(), other.parameters(), strict=True):
            mine.lerp_(theirs, rate)

    @torch.no_grad()
    def targets(self, transitions: Sequence[Transition], gamma: float) -> Float[Tensor, "turn twin"]:
        """Return reward plus discounted value of the state that followed, 0 where nothing did, for both twins."""
        rewards = torch.tensor([each.reward for each in transitions], dtype=torch.float64)
        goes_on = torch.tensor([each.following is not None for each in transitions], dtype=torch.float64)
        return rewards[:, None] + gamma * goes_on[:, None] * self.v([each.following or "" for each in transitions])


def with_action(states: Sequence[str], actions: Sequence[str]) -> list[str]:
    """Return the text of each state with its action."""
    return [f"{state}\naction {action}" for state, action in zip(states, actions, strict=True)]


def _random_head(critic: JointCritic, seed: int) -> JointCritic:
    """Give the last layer random weights, so that twins differ from the start."""
    generator = torch.Generator().manual_seed(seed)
    nn.init.normal_(critic.head.weight, std=0.1, generator=generator)
    return critic


def expectile_loss(errors: Tensor, expectile: float) -> Tensor:
    """Return squared errors, target less estimate; with ``expectile`` above 0.5 estimates that are too low weigh more.

    >>> expectile_loss(torch.tensor([1.0, -1.0]), 0.5).tolist()
    [1.0, 1.0]
    """
    weight = torch.where(errors > 0, 2 * expectile, 2 * (1 - expectile))
    return weight.to(errors.dtype) * errors**2
