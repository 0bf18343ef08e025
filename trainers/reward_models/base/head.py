"""A small head over turns, and fitting it to numbers of turns or of whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from turngym.agents.models.forward_pass import last_states
from turngym.errors import DivergenceError
from turngym.seeding import stream, stream_seed
from turngym.trainers.reward_models.base.features import Encoded, Features, Inputs, normalised

Loss: TypeAlias = Callable[[Float[Tensor, "turn"], Int[Tensor, "turn"], list[int]], Tensor]
"""From outputs for the turns of some episodes, the position of each turn's episode among them, and their numbers."""

_EPISODES_A_BATCH, _TURNS_A_PASS = 16, 64


class Head(nn.Module):
    """One number for every turn: linear, or with one hidden layer. Unseen features contribute 0.

    Args:
        features: Its inputs.
        hidden: Width of the hidden layer; 0 for none.
        seed: Seed of the first weights.
    """

    def __init__(self, features: Features, hidden: int, seed: int) -> None:
        super().__init__()
        self.first = features.first_layer(hidden or 1)
        self.bias = nn.Parameter(torch.zeros(hidden or 1))
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(hidden, generator=generator) / max(hidden, 1) ** 0.5 if hidden else torch.ones(0)
        self.last = nn.Parameter(start)
        self.constant = nn.Parameter(torch.zeros(()))

    def forward(self, inputs: Inputs) -> Float[Tensor, "turn"]:
        """Return the outputs."""
        if len(inputs) == 3:
            ids, starts, weights = inputs
            hidden: Any = self.first(ids, starts, per_sample_weights=weights)
        else:
            hidden = self.first(*inputs)
        if not len(self.last):
            return torch.as_tensor(hidden[:, 0] + self.bias[0])
        return torch.as_tensor(torch.tanh(hidden + self.bias) @ self.last + self.constant)


class Trunk(nn.Module):
    """A language model and a linear layer on its last hidden state, trained together.

    Args:
        backbone: The transformer without its output layer; without dropout.
        layer: The layer.
    """

    def __init__(self, backbone: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.backbone, self.layer = backbone.eval(), layer

    def forward(self, tokens: Int[Tensor, "turn token"]) -> Float[Tensor, "turn width"]:
        """Return the layer's output for each row of tokens, which ends where -1 begins."""
        ids = [row[row >= 0].tolist() for row in tokens]
        parts = [last_states(self.backbone, ids[at : at + _TURNS_A_PASS]) for at in range(0, len(ids), _TURNS_A_PASS)]
        states = normalised(torch.cat(parts)).to(next(self.layer.parameters()).device)
        return torch.as_tensor(self.layer(states))


def fit_head(
    head: Head,
    encoded: Encoded,
    episodes: Sequence[range],
    loss: Loss,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
    seed: int,
) -> float:
    """Fit a head in place; the same arguments give the same weights.

    Args:
        head: Data to fit.
        encoded: The turns.
        episodes: Indices of each episode's turns; at least one episode, none without a turn.
        loss: Minimised value.
        epochs: Passes over the episodes.
        learning_rate: AdamW's step size.
        weight_decay: AdamW's weight decay.
        seed: Seed of the order of episodes.

    Returns:
        The mean loss of the last pass.

    Raises:
        DivergenceError: The loss is not finite.
    """
    optimizer = torch.optim.AdamW(head.parameters(), lr=learning_rate, weight_decay=weight_decay)
    total = 0.0
    for epoch in range(epochs):
        order = [int(each) for each in stream("reward order", seed, epoch).permutation(len(episodes))]
        total = 0.0
        for start in range(0, len(order), _EPISODES_A_BATCH):
            part = order[start : start + _EPISODES_A_BATCH]
            rows = [row for episode in part for row in episodes[episode]]
            owner = torch.tensor([k for k, episode in enumerate(part) for _ in episodes[episode]])
            value = loss(head(encoded.select(rows)), owner, part)
            if not bool(torch.isfinite(value)):
                raise DivergenceError("the reward model's loss is not finite: lower its learning_rate.")
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            total += float(value.detach()) * len(part)
    return total / len(episodes)


def head_seed(seed: int) -> int:
    """Return the seed of a head's first weights."""
    return stream_seed("reward head", seed) % 2**31


@torch.no_grad()
def outputs(head: Head, encoded: Encoded, count: int) -> list[float]:
    """Return the outputs of all turns, ``count`` of them."""
    found: list[float] = []
    for start in range(0, count, 1024):
        found += head(encoded.select(range(start, min(start + 1024, count)))).double().tolist()
    return found
