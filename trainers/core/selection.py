"""Selecting episodes of a turn table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from turngym.lazy import Tensor, torch
from turngym.trainers.core.columns import Scope, TableColumn
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool

_FIELDS: dict[Scope, tuple[str, ...]] = {
    "token": (
        "token_turn",
        "token_logprob",
        "token_value",
        "token_reference_logprob",
        "token_trainer_logprob",
        "token_teacher_logprob",
        "token_squares",
        "token_divergence",
        "token_other_logprob",
    ),
    "turn": (
        "episode",
        "turn",
        "group",
        "anchor",
        "agent",
        "reward",
        "terminated",
        "truncated",
        "is_valid",
        "num_tokens",
        "turn_value",
        "role",
        "anchor_text",
        "staleness",
        "masked",
    ),
    "episode": ("final_value", "earlier_reward", "episode_number"),
}
_KEYS = ("episode", "group", "anchor", "agent")


def select_episodes(table: TurnTable, chosen: Bool[Tensor, "episode"]) -> TurnTable:
    """Return the table with only some of its episodes.

    Args:
        table: A table.
        chosen: Mask of the episodes to keep.
    """
    turns = chosen[table.episode] if table.num_turns else torch.zeros(0, dtype=torch.bool)
    kept: dict[Scope, Tensor] = {"token": turns[table.token_turn], "turn": turns, "episode": chosen}
    found: dict[str, Any] = {
        name: _at(getattr(table, name), kept[scope]) for scope, names in _FIELDS.items() for name in names
    }
    found |= {name: found[name].unique(return_inverse=True)[1] for name in _KEYS}
    found["token_turn"] = (turns.cumsum(0) - 1)[found["token_turn"]]
    if len(table.role):
        present, found["role"] = found["role"].unique(return_inverse=True)
        found["role_names"] = tuple(table.role_names[index] for index in present.tolist())
    columns: dict[Scope, Any] = {
        scope: {name: _at(column, kept[scope]) for name, column in own.items()} for scope, own in table.columns.items()
    }
    return replace(table, **found, columns=columns)


def _at(column: TableColumn | None, kept: Tensor) -> TableColumn | None:
    """Return the kept entries of a column; None if the table does not have it."""
    if column is None or not len(column):
        return column
    if isinstance(column, tuple):
        return tuple(text for text, keeps in zip(column, kept.tolist(), strict=True) if keeps)
    return column[kept]
