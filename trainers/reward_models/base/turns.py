"""The turns of an episode as a reward model reads them: observation, action, next observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turngym.agents.trajectory import Trajectory, Turn
from turngym.wrappers.rewards import recipes


class TurnText(NamedTuple):
    """One turn.

    Args:
        goal: First observation of the episode.
        observation: Observation before the action.
        action: The action.
        seen: Observation after the action.
    """

    goal: str
    observation: str
    action: str
    seen: str


def whole_turns(trajectory: Trajectory) -> tuple[Turn, ...]:
    """Return the turns of an episode from its reset on, those before it branched off too."""
    return (*trajectory.earlier_turns, *trajectory.turns)


def turn_texts(trajectory: Trajectory) -> list[TurnText]:
    """Return the whole turns of an episode as text.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> turns = [Turn("a", "", "go"), Turn("b", "", "stop")]
    >>> played = Trajectory(EpisodeSpec(0, 0), turns=turns, final_observation="c")
    >>> [tuple(each) for each in turn_texts(played)]
    [('a', 'a', 'go', 'b'), ('a', 'b', 'stop', 'c')]
    """
    turns = whole_turns(trajectory)
    if not turns:
        return []
    seen = [*(turn.observation for turn in turns[1:]), trajectory.final_observation]
    goal = turns[0].observation
    return [TurnText(goal, turn.observation, turn.action, after) for turn, after in zip(turns, seen, strict=True)]


def states(trajectory: Trajectory) -> list[str]:
    """Return the state after each whole turn: its anchor if known, else the observation."""
    turns = whole_turns(trajectory)
    after = [turn.anchor or turn.observation for turn in turns[1:]]
    return [*after, trajectory.final_anchor or trajectory.final_observation][: len(turns)]


def progress_after(trajectory: Trajectory) -> list[float]:
    """Return the progress before the first and after each whole turn; NaN if unknown."""
    return [*(turn.progress for turn in whole_turns(trajectory)), trajectory.progress]


def task_key(trajectory: Trajectory) -> str:
    """Return a name for the task instance: its hash or, if unknown, the first observation."""
    turns = whole_turns(trajectory)
    return recipes.task_key(trajectory.env_id, trajectory.instance, turns[0].observation if turns else "")


def key_steps(trajectory: Trajectory, match: str) -> tuple[str, ...]:
    """Return the steps of an episode for recipes.

    Args:
        trajectory: The episode.
        match: ``"action"`` for canonical actions, ``"state"`` for the states that they led to.
    """
    if match == "state":
        return tuple(states(trajectory))
    texts = turn_texts(trajectory)
    return tuple(recipes.canonical_action(text.goal, text.observation, text.action) for text in texts)


def offsets(lengths: Sequence[int]) -> list[range]:
    """Return the slices of several sequences in their concatenation.

    >>> offsets([2, 0, 1])
    [range(0, 2), range(2, 2), range(2, 3)]
    """
    found, start = [], 0
    for length in lengths:
        found.append(range(start, start + length))
        start += length
    return found
