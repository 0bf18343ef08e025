"""The oracle: a goal's plan, taken up where the actions so far have left it."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.desktop.goals.base import Goal


def next_action(goal: Goal, actions: Sequence[str]) -> str:
    """Return the action after what was done.

    As long as only the plan was followed, that is its next one. After anything else, the goal's repair comes first,
    which begins with keys that close menus and dialogs, and then the plan. It knows what was done and the goal.
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
