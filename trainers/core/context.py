"""Handling and counting episodes whose next prompt did not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import torch
from turngym.trainers.core.turn_table import TurnTable, usable
from turngym.trainers.core.update_config import OnContext


def did_not_fit(trajectory: Trajectory) -> bool:
    """Return whether an episode ended because its next prompt did not fit."""
    return trajectory.truncation_reason == "context"


def require_turns(trajectories: Sequence[Trajectory]) -> None:
    """Raise if no episode had room for its first prompt, because no later one would.

    Raises:
        ConfigError: There are episodes, and in none of them the first prompt fits.
    """
    empty = [trajectory for trajectory in trajectories if did_not_fit(trajectory) and not trajectory.turns]
    if empty and len(empty) == len(trajectories):
        raise ConfigError(
            f"the first prompt fits in none of {len(empty)} episodes of {empty[0].env_id}, so there is nothing to "
            f"learn from: {empty[0].truncation_detail}"
        )


def kept(trajectories: Sequence[Trajectory], on_context: OnContext) -> list[Trajectory]:
    """Return the trajectories that may be trained on: no fault, at least one turn, and not dropped."""
    return [each for each in usable(trajectories) if on_context != "drop" or not did_not_fit(each)]


def masked(table: TurnTable, trajectories: Sequence[Trajectory], on_context: OnContext) -> TurnTable:
    """Return the table with the episodes that are excluded from the loss marked.

    Args:
        table: The table of the trajectories.
        trajectories: What :func:`kept` returned.
        on_context: How to handle episodes whose next prompt did not fit.
    """
    if on_context != "mask":
        return table
    marks = [did_not_fit(each) for each in trajectories for _ in each.turns]
    return replace(table, masked=torch.tensor(marks, dtype=torch.bool))


def context_metrics(trajectories: Sequence[Trajectory], on_context: OnContext) -> dict[str, float]:
    """Return how many episodes are not in the loss because a prompt did not fit, and what that did to groups."""
    cut = [each for each in trajectories if did_not_fit(each) and not each.fault]
    lost = [each for each in cut if on_context == "drop" or not each.turns]
    silent = lost if on_context != "mask" else cut
    return {
        "train/context_not_in_loss": float(len(silent)),
        "train/context_groups_shrunk": float(len({each.spec.group for each in lost})),
    }
