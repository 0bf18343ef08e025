"""Truncated episodes and completions: exclusion from the loss, and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import torch
from turngym.trainers.core.turn_table import TurnTable, usable
from turngym.trainers.core.update_config import Exclusion, OnContext


def did_not_fit(trajectory: Trajectory) -> bool:
    """Return True if an episode ended because its next prompt did not fit."""
    return trajectory.truncation_reason == "context"


def require_turns(trajectories: Sequence[Trajectory]) -> None:
    """Raise if no episode's first prompt fits, because training would have no data.

    Raises:
        ConfigError: There are episodes, and none of their first prompts fits.
    """
    empty = [trajectory for trajectory in trajectories if did_not_fit(trajectory) and not trajectory.turns]
    if empty and len(empty) == len(trajectories):
        raise ConfigError(
            f"the first prompt fits in none of {len(empty)} episodes of {empty[0].env_id}, so there is nothing to "
            f"learn from: {empty[0].truncation_detail}"
        )


def kept(trajectories: Sequence[Trajectory], on_context: OnContext) -> list[Trajectory]:
    """Return the trajectories to train on: without a fault, with at least one turn, and not dropped."""
    return [each for each in usable(trajectories) if on_context != "drop" or not did_not_fit(each)]


def _is_unfinished(trajectory: Trajectory) -> bool:
    """Return True if an episode was truncated, but not because of a prompt that did not fit."""
    return trajectory.truncated and not trajectory.terminated and not did_not_fit(trajectory)


def masked(table: TurnTable, trajectories: Sequence[Trajectory], exclusion: Exclusion) -> TurnTable:
    """Return the table with the turns that are excluded from the loss marked.

    Args:
        table: The table of the trajectories.
        trajectories: Result of :func:`kept`.
        exclusion: Handling of truncated episodes and completions.
    """
    if "mask" not in exclusion:
        return table
    marks = []
    for each in trajectories:
        whole = (exclusion.on_context == "mask" and did_not_fit(each)) or (
            exclusion.on_truncated == "mask" and _is_unfinished(each)
        )
        marks += [whole or (exclusion.on_overlong == "mask" and turn.cut_off) for turn in each.turns]
    return replace(table, masked=torch.tensor(marks, dtype=torch.bool))


def context_metrics(trajectories: Sequence[Trajectory], on_context: OnContext) -> dict[str, float]:
    """Return metrics of episodes excluded because a prompt did not fit, and of the effect on groups."""
    cut = [each for each in trajectories if did_not_fit(each) and not each.fault]
    lost = [each for each in cut if on_context == "drop" or not each.turns]
    silent = lost if on_context != "mask" else cut
    return {
        "train/context_not_in_loss": float(len(silent)),
        "train/context_groups_shrunk": float(len({each.spec.group for each in lost})),
    }


def exclusion_metrics(trajectories: Sequence[Trajectory], exclusion: Exclusion) -> dict[str, float]:
    """Return metrics of truncated episodes and turns that are excluded from the loss."""
    used = kept(trajectories, exclusion.on_context)
    overlong = sum(turn.cut_off for each in used for turn in each.turns) if exclusion.on_overlong == "mask" else 0
    unfinished = sum(map(_is_unfinished, used)) if exclusion.on_truncated == "mask" else 0
    return {
        **context_metrics(trajectories, exclusion.on_context),
        "train/truncated_not_in_loss": float(unfinished),
        "train/overlong_not_in_loss": float(overlong),
    }
