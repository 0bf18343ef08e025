"""Signs in a run's metrics that little or nothing was learnt, with the options and commands to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from turngym.arithmetic import as_float
from turngym.trainers.core.wording import counted, percent

LAST = 10
"""Iterations at the end of a run that are looked at."""


class Sign(NamedTuple):
    """A metric that should be small.

    Args:
        metric: Its name; a share.
        most: The share from which on it is reported.
        what: Unit of the share, appended to it.
        look: Folder to inspect.
    """

    metric: str
    most: float
    what: str
    look: str


SIGNS = (
    Sign(
        "rollout/invalid_actions",
        0.5,
        "of the actions were invalid",
        "read the answers in the samples below and the format that the rules ask for (`turngym play ENV --agent "
        "hf:MODEL` shows both); --rollout.format, more --warmup.demonstrations",
    ),
    Sign(
        "rollout/overlong",
        0.25,
        "of the completions were cut at their longest length",
        "a larger --rollout.max-new-tokens, or a prompt or method that asks for shorter answers; --update.on-overlong "
        "says whether they are trained on",
    ),
    Sign(
        "rollout/context",
        0.25,
        "of the episodes ended because the next prompt did not fit",
        "shorter prompts (--rollout.prompt.history, --rollout.prompt.mode, --rollout.prompt.fit), fewer turns, or "
        "a model with a longer context",
    ),
    Sign(
        "credit/groups_with_equal_returns",
        0.8,
        "of the groups had equal returns, from which a method that compares within groups learns nothing",
        "easier tasks if all fail, harder ones if all succeed; a larger --rollout.group-size or --rollout.temperature",
    ),
    Sign(
        "rollout/faults",
        0.05,
        "of the episodes broke",
        "`turngym check` on the environment; the log names the faults",
    ),
)


def look_at(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each sign in the last iterations.

    Args:
        metrics: The metrics of all iterations, the newest last.

    >>> look_at([{"rollout/invalid_actions": 1.0}])[0][:68]
    '100.0 % of the actions were invalid in the last iteration. Look at: '
    """
    last = metrics[-LAST:]
    when = "in the last iteration" if len(last) == 1 else f"in the last {counted(len(last), 'iteration')}"
    found = []
    for sign in SIGNS:
        values = [share for record in last if not math.isnan(share := _share(record, sign.metric))]
        if values and fmean(values) >= sign.most:
            found.append(f"{percent(fmean(values))} {sign.what} {when}. Look at: {sign.look}.")
    return found


def _share(record: Mapping[str, Any], metric: str) -> float:
    value = record.get(metric)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    value = as_float(value)
    if metric != "rollout/faults":
        return value
    whole = record.get("rollout/episodes", 0.0)  # those without a fault
    both = value + as_float(whole) if isinstance(whole, int | float) else math.nan
    return value / both if 0 < both < math.inf else math.nan
