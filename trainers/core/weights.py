"""Loss weights of the sampled tokens of a batch, computed before the batch is split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.errors import ConfigError, nearest
from turngym.lazy import Tensor, torch
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

NORMALISATIONS = ("token", "turn", "turn_sum", "trajectory", "trajectory_sum", "nested", "group")


def loss_weights(
    table: TurnTable, normalisation: str, masked: Bool[Tensor, "token"] | None = None
) -> Float[Tensor, "token"]:
    """Return the loss weight of each sampled token, in table order, float64.

    Masked tokens, and those of masked turns, have weight 0 and are ignored in averages, as are turns, episodes and
    groups without tokens. The weights sum to 1, except those of ``turn_sum`` and ``trajectory_sum``, which sum to the
    mean number of tokens per turn and per trajectory.

    Args:
        table: The whole batch.
        normalisation: One of the literals of :data:`turngym.trainers.core.algorithm.Normalisation`.
        masked: Tokens excluded by the method, in addition to the table's masked turns.

    Raises:
        ConfigError: The normalisation is unknown.
    """
    if normalisation not in NORMALISATIONS:
        raise ConfigError(f"no normalisation named {normalisation!r}. {nearest(normalisation, NORMALISATIONS)}")
    left_out = table.masked[table.token_turn] if len(table.masked) else None
    if masked is not None:
        left_out = masked if left_out is None else left_out | masked
    if left_out is not None:
        weights = torch.zeros(len(table.token_turn), dtype=torch.float64)
        in_loss = ~left_out
        weights[in_loss] = _weights(table, table.token_turn[in_loss], normalisation)
        return weights
    return _weights(table, table.token_turn, normalisation)


def _weights(table: TurnTable, turn: Tensor, normalisation: str) -> Tensor:
    """Return the weights of some tokens, given the turn of each."""
    episode, group = table.episode[turn], table.group[turn]
    each = torch.ones(len(turn), dtype=torch.float64)
    if normalisation == "token":
        return each / max(len(turn), 1)
    if normalisation == "turn":
        return each / (_size(turn) * _distinct(turn))
    if normalisation == "turn_sum":
        return each / _distinct(turn)
    if normalisation == "trajectory":
        return each / (_size(episode) * _distinct(episode))
    if normalisation == "trajectory_sum":
        return each / _distinct(episode)
    if normalisation == "group":
        return each / (_size(group) * _distinct(group))
    turns_with_tokens = torch.bincount(table.episode[torch.unique(turn)], minlength=table.num_episodes)
    return each / (_size(turn) * turns_with_tokens[episode] * _distinct(episode))


def _size(keys: Tensor) -> Tensor:
    """Return, for each entry, the number of entries with the same key."""
    return torch.bincount(keys)[keys] if len(keys) else keys


def _distinct(keys: Tensor) -> int:
    return len(torch.unique(keys))
