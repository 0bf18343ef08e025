"""Progress labels of recorded episodes of any environment, from the solved ones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from turngym.agents.trajectory import Trajectory
from turngym.trainers.reward_models.base.turns import key_steps, task_key
from turngym.wrappers.rewards.recipes import RecipeBook, Steps, progress_labels, recipes


def find_recipes(
    trajectories: Sequence[Trajectory],
    *,
    match: str = "action",
    scope: str = "task",
    most: int = 4,
    similarity: float = 0.5,
) -> RecipeBook:
    """Return the recipes of every task that was solved.

    Args:
        trajectories: Recorded episodes; the solved ones make the recipes.
        match: Steps to compare: canonical actions (``"action"``), or the resulting states (``"state"``).
        scope: Solved episodes that form recipes: of the same ``"task"``, or of the whole ``"environment"``.
        most: Maximum number of recipes per task, one per route.
        similarity: Share of its initial steps that a recipe keeps when further solved episodes join it.
    """
    solved: dict[str, list[Steps]] = defaultdict(list)
    for each in trajectories:
        if each.success == 1 and not each.fault:
            solved[_key(each, scope)].append(key_steps(each, match))
    found = {key: recipes(own, most, similarity) for key, own in solved.items()}
    return RecipeBook(match, scope, {key: own for key, own in found.items() if own})


def label_progress(trajectories: Sequence[Trajectory], book: RecipeBook) -> list[list[float] | None]:
    """Return the progress after every turn of every episode; None where its task has no recipe.

    Args:
        trajectories: Recorded episodes, solved or not.
        book: The recipes; :func:`find_recipes` makes them.
    """
    found: list[list[float] | None] = []
    for each in trajectories:
        known = book.known.get(_key(each, book.scope), ())
        found.append(progress_labels(key_steps(each, book.match), known, each.success == 1) if known else None)
    return found


def with_progress(trajectory: Trajectory, labels: Sequence[float] | None) -> Trajectory:
    """Return an episode whose turns have labels for their progress; unknown ones if there are none.

    Args:
        trajectory: The episode, from its reset on.
        labels: The progress after each turn.
    """
    whole = [math.nan] * (len(trajectory.turns) + 1) if labels is None else [0.0, *labels]
    turns = [replace(turn, progress=value) for turn, value in zip(trajectory.turns, whole, strict=False)]
    return replace(trajectory, turns=turns, progress=whole[-1])


def _key(trajectory: Trajectory, scope: str) -> str:
    return trajectory.env_id if scope == "environment" else task_key(trajectory)
