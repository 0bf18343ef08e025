"""Recorded states as a suite that agents are evaluated on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngym.agents.recordings.states import State, read_states
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.trainers.core.wording import counted


@dataclass(frozen=True)
class States:
    """States that an agent can be evaluated from; :func:`recorded_states` reads them from a folder.

    Args:
        suite: The environments, with the seed of each state.
        states: Label of an environment -> its states, in the order of the seeds.
        skipped: Episodes that were over before the turn that was asked for.
    """

    suite: Suite
    states: Mapping[str, tuple[State, ...]]
    skipped: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.states.values()))


def recorded_states(text: str) -> States:
    """Return the states that ``FOLDER@TURN`` or ``FOLDER:EPISODE@TURN`` names.

    Args:
        text: The folder is one of ``turngym eval --out``. The episode is the number of its task, with all attempts, or
            ``TASK.ATTEMPT``; without it, all episodes of the folder are meant. The turn is the number of turns before
            the state (0 is the start), their share of the episode as in ``50%`` (rounded down), or ``every``.

    Raises:
        ConfigError: There is no such folder, episode or turn, the folder has no transcripts, or an environment may not
            be made from a file.

    >>> import tempfile, turngym
    >>> folder = tempfile.mkdtemp() + "/base"
    >>> _ = turngym.evaluate("turngym/GuessTheNumber-v0", "expert", episodes=5, out=folder)
    >>> found = turngym.evaluate(recorded_states(f"{folder}@1"), "random", repeats=2)
    >>> found.result.results[0].success.count <= 10
    True
    """
    read = read_states(text)
    entries = [_entry(environment, found) for environment, found in read.found]
    states = {entry.label: found for entry, (_, found) in zip(entries, read.found, strict=True)}
    name = f"{read.suite['name']} from recorded states"
    suite = Suite(name, read.suite["version"], "", tuple(entries), read.suite["metric"])
    return States(suite, states, read.skipped)


def _entry(environment: Mapping[str, Any], states: Sequence[State]) -> SuiteEntry:
    seeds, wrappers = tuple(state.seed for state in states), tuple(map(str, environment["wrappers"]))
    return SuiteEntry(environment["env"], environment["options"], seeds=seeds, wrappers=wrappers)


def remark(states: States) -> str:
    """Return a remark on the episodes that have no such state; empty if all have one.

    >>> remark(States(Suite("a", 0, "", (SuiteEntry("turngym/Sokoban-v0"),)), {}, 2))
    '2 episodes were over before that turn and are left out.'
    """
    return (
        f"{counted(states.skipped, 'episode')} were over before that turn and are left out." if states.skipped else ""
    )
