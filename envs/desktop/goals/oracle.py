"""The oracle: continues a goal's plan after the actions so far."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.desktop.goals.base import Goal


def next_action(goal: Goal, actions: Sequence[str]) -> str:
    """Return the next action after the actions so far.

    If the actions so far follow the plan, this is its next action. Otherwise the goal's repair comes first, beginning
    with keys that close menus and dialogs, and then the plan. The oracle uses only the actions so far and the goal.
    """
    plan = (*goal.plan, "done")
    done = tuple(action for action in actions if action != "wait")
    if plan[: len(done)] == done:
        return plan[len(done)]
    way = (*goal.repair, *plan)
    for length in range(min(len(way) - 1, len(done)), 0, -1):
        if done[-length:] == way[:length]:
            return way[length]
    return way[0]
