"""States in the middle of recorded episodes, from which agents can be evaluated and compared.

A state is reached by the seed, the options and the recorded actions of its episode; what is seen on the way must be
what was recorded. Folders are untrusted: only what is registered is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turngym.agents.episodes.continuing import Beginning, RecordedTurn
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.evaluation.folder import Key
from turngym.benchmarks.evaluation.remade import refused
from turngym.benchmarks.evaluation.submission import Submission, key_of, load_submission
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.errors import ConfigError, TurngymError, nearest
from turngym.trainers.core.wording import counted

_HOW = "write FOLDER@TURN or FOLDER:EPISODE@TURN, such as runs/base@50% or runs/base:3@5"
EVERY = "every"
"""Turn that stands for all turns of an episode."""


@dataclass(frozen=True)
class State:
    """A state of a recorded episode.

    Args:
        key: The recorded episode.
        seed: Its seed.
        instance: Hash of its task instance.
        beginning: The turns before the state.
        reward: The rewards of these turns together.
    """

    key: Key
    seed: int
    instance: str
    beginning: Beginning
    reward: float

    def as_json(self) -> dict[str, Any]:
        """Return what a result records about where an episode began."""
        _, task, attempt = self.key
        turn = len(self.beginning.turns)
        return {"task": task, "attempt": attempt, "turn": turn, "sha256": self.beginning.digest}

    def require_reached(self, played: Trajectory) -> None:
        """Raise if an episode has left the recorded one before the state.

        Raises:
            TurngymError: It ended earlier, is of another task, or earned other rewards.
        """
        start, count = self.beginning, len(self.beginning.turns)
        if played.fault or played.truncation_reason == "context":
            return
        reason = ""
        if len(played.turns) <= count:
            reason = f"ends after turn {len(played.turns)}"
        elif played.instance != self.instance:
            reason = f"is of the task {played.instance}, recorded was {self.instance}"
        elif abs(sum(turn.reward for turn in played.turns[:count]) - self.reward) > 1e-9 * (1 + abs(self.reward)):
            reason = f"earns other rewards than recorded in its first {count} turns"
        if reason:
            raise TurngymError(f"the replay of {start.name} {reason}: the rules have changed since. Record it again.")


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
    folder, episode, turn = _parsed(text)
    submission = load_submission(folder)
    if submission.transcripts is None:
        raise ConfigError(f"{folder} has no transcripts.jsonl: without it nothing shows that a replay is the same.")
    told = {key_of(each): each for each in submission.transcripts}
    wanted = {key: each for key, each in told.items() if _is_wanted(key, episode)}
    if not wanted:
        raise ConfigError(f"{folder} has no episode {episode}: its episodes are {_known(told)}.")
    entries, states, skipped = [], dict[str, tuple[State, ...]](), 0
    for environment in submission.config["environments"]:
        if reason := refused(environment):
            raise ConfigError(f"episodes of {folder} cannot be continued: {reason}.")
        rows = [row for row in submission.of(environment["label"]) if key_of(row) in wanted and _is_sound(row)]
        found = [state for row in rows for state in _states_of(submission, row, wanted[key_of(row)], turn)]
        skipped += len(rows) - len({state.key for state in found})
        if found:
            entry = _entry(environment, found)
            entries.append(entry)
            states[entry.label] = tuple(found)
    if not entries:
        raise ConfigError(f"no episode of {text} was still being played after turn {turn}: name an earlier turn.")
    asked = submission.config["suite"]
    suite = Suite(f"{asked['name']} from recorded states", asked["version"], "", tuple(entries), asked["metric"])
    return States(suite, states, skipped)


def _entry(environment: Mapping[str, Any], states: list[State]) -> SuiteEntry:
    seeds, wrappers = tuple(state.seed for state in states), tuple(map(str, environment["wrappers"]))
    return SuiteEntry(environment["env"], environment["options"], seeds=seeds, wrappers=wrappers)


def _parsed(text: str) -> tuple[Path, str, str]:
    """Return folder, episode and turn; the episode is empty where all are meant."""
    place, sign, turn = text.rpartition("@")
    number = turn.removesuffix("%")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if not sign or not place or not (turn == EVERY or is_number):
        meant = nearest(turn, (EVERY,)) if sign else ""
        hint = f" {meant}" if meant.startswith("Did") else ""
        raise ConfigError(f"{text!r} names no recorded state: {_HOW}.{hint}")
    if turn.endswith("%") and int(number) > 99:
        raise ConfigError(f"{text!r}: the share of an episode's turns must be at most 99%, got {turn}.")
    folder, sign, episode = place.rpartition(":")
    return (Path(folder), episode, turn) if sign and not Path(place).exists() else (Path(place), "", turn)


def _is_wanted(key: Key, episode: str) -> bool:
    return episode in ("", str(key[1]), f"{key[1]}.{key[2]}")


def _is_sound(row: Mapping[str, Any]) -> bool:
    return row["status"] != "env_error" and len(row["actions"]) > 0


def _known(told: Mapping[Key, Any]) -> str:
    tasks = sorted({key[1] for key in told})
    return f"{tasks[0]} to {tasks[-1]}" if tasks else "none"


def _states_of(
    submission: Submission, row: Mapping[str, Any], transcript: Mapping[str, Any], turn: str
) -> Iterator[State]:
    """Yield the states of an episode."""
    turns = transcript["turns"]
    name = f"{submission.path}:{row['task']}.{row['attempt']}"
    if [each["action"] for each in turns] != row["actions"]:
        raise ConfigError(f"the transcript of {name} has other actions than its episode: the folder is damaged.")
    recorded = [RecordedTurn(_seen(each["observation"]), each["action"], each["completion"]) for each in turns]
    count = len(turns)
    chosen = range(count) if turn == EVERY else [count * int(turn[:-1]) // 100 if turn[-1] == "%" else int(turn)]
    for number in chosen:
        if number < count:
            start = Beginning(name, tuple(recorded[:number]), recorded[number].observation)
            reward = float(sum(each["reward"] for each in turns[:number]))
            yield State(key_of(row), row["seed"], row["instance"], start, reward)


def _seen(observation: Any) -> str:
    return str(observation["text"] if isinstance(observation, Mapping) and "text" in observation else observation)


def remark(states: States) -> str:
    """Return a remark on the episodes that have no such state; empty if all have one.

    >>> remark(States(Suite("a", 0, "", (SuiteEntry("turngym/Sokoban-v0"),)), {}, 2))
    '2 episodes were over before that turn and are left out.'
    """
    return (
        f"{counted(states.skipped, 'episode')} were over before that turn and are left out." if states.skipped else ""
    )
