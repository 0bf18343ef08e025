"""Labels of recorded turns from playouts of the states around them (Math-Shepherd; GUI-Shepherd's form).

``turngym eval --from FOLDER@every --agent AGENT --repeats N --out PLAYOUTS`` plays on from before every turn.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from turngym.agents.episodes.continuing import Beginning, RecordedTurn
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.reward_models.base.recordings import read_rows
from turngym.trainers.reward_models.base.turns import whole_turns

Label: TypeAlias = Literal["share", "any", "steps"]
LABELS = get_args(Label)
_HOW = "turngym eval --from FOLDER@every --agent AGENT --repeats 8 --out PLAYOUTS"


class Playout(NamedTuple):
    """An episode that continued a recorded one.

    Args:
        success: Whether it solved the task.
        turns: Number of turns after the state that it began in.
    """

    success: bool
    turns: int


State: TypeAlias = tuple[str, int, str]
"""Environment, seed, and hash of everything seen and done since the reset."""
Playouts: TypeAlias = Mapping[State, Sequence[Playout]]


def read_playouts(folder: Path) -> Playouts:
    """Return the playouts of an evaluation that continued recorded episodes, by the state that they began in.

    Raises:
        ConfigError: There is no such evaluation.
    """
    found: dict[State, list[Playout]] = defaultdict(list)
    for row in read_rows(folder / "episodes.jsonl", _playout):
        if row is not None:
            found[row[0]].append(row[1])
    if not found:
        raise ConfigError(f"{folder} holds no episode that continues a recorded one: write it with `{_HOW}`.")
    return found


def _playout(row: Mapping[str, Any]) -> tuple[State, Playout] | None:
    state = row.get("state")
    if state is None or row["status"] == "env_error":
        return None
    turns = int(row["length"]) - int(state["turn"])
    return (str(row["env"]), int(row["seed"]), str(state["sha256"])), Playout(row["success"] == 1, turns)


def label_by_playouts(trajectories: Sequence[Trajectory], playouts: Playouts, label: Label) -> list[list[float] | None]:
    """Return a label for every turn of every episode; None where a state of it was not played on from.

    Args:
        trajectories: Recorded episodes, from their resets on.
        playouts: Those from the states before their turns; :func:`read_playouts` reads them.
        label: As for :func:`turn_labels`.
    """
    found: list[list[float] | None] = []
    for each in trajectories:
        states = [playouts.get(state, ()) for state in _states(each)]
        end = Playout(each.success == 1, 0)
        is_known = bool(states) and all(states) and not each.fault
        found.append(turn_labels([*states, [end]], label) if is_known else None)
    return found


def turn_labels(states: Sequence[Sequence[Playout]], label: Label) -> list[float]:
    """Return the label of each turn, given the playouts from the states before, between and after the turns.

    Args:
        states: One more than turns, each with one playout or more.
        label: ``share`` of the playouts after the turn that succeed, 1 if ``any`` does, or 1 if the shortest success
            after the turn takes fewer ``steps`` than the one before it.

    >>> won, lost = Playout(True, 2), Playout(False, 5)
    >>> turn_labels([[won, lost], [won, won, won, lost], [lost]], "share")
    [0.75, 0.0]
    >>> turn_labels([[Playout(True, 3)], [Playout(True, 2)], [Playout(True, 2)], [Playout(True, 1)]], "steps")
    [1.0, 0.0, 1.0]
    """
    if label == "steps":
        left = [min((each.turns for each in state if each.success), default=math.inf) for state in states]
        return [float(after < before) for before, after in itertools.pairwise(left)]
    shares = [fmean(each.success for each in state) for state in states[1:]]
    return [float(share > 0) for share in shares] if label == "any" else shares


def _states(trajectory: Trajectory) -> list[State]:
    """Return the state before each turn."""
    told = [RecordedTurn(turn.observation, turn.action) for turn in whole_turns(trajectory)]
    starts = (Beginning("", tuple(told[:number]), turn.observation) for number, turn in enumerate(told))
    return [(trajectory.env_id, trajectory.spec.seed, start.digest) for start in starts]
