"""States in the middle of recorded episodes, from which agents are evaluated, compared and trained.

A state is reached by the seed, the options and the recorded actions of its episode; what is seen on the way must be
what was recorded. Folders are untrusted: only what is registered is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turngym.agents.episodes.continuing import Beginning, RecordedTurn
from turngym.agents.recordings.remade import refused
from turngym.agents.recordings.submission import Submission, key_of, load_submission
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError, TurngymError, nearest

_HOW = "write FOLDER@TURN or FOLDER:EPISODE@TURN, such as runs/base@50% or runs/base:3@5"
EVERY = "every"
"""Turn that stands for all turns of an episode."""


@dataclass(frozen=True)
class State:
    """A state of a recorded episode.

    Args:
        key: The recorded episode: label, task and attempt.
        seed: Its seed.
        instance: Hash of its task instance.
        beginning: The turns before the state.
        reward: The rewards of these turns together.
    """

    key: tuple[str, int, int]
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
class RecordedStates:
    """States that a text names; :func:`read_states` reads them.

    Args:
        suite: Suite of the folder, as its ``config.json`` has it.
        found: Environments of the folder, as its ``config.json`` has them, each with its states: one at least.
        skipped: Number of episodes that were over before the turn that was asked for.
    """

    suite: Mapping[str, Any]
    found: Sequence[tuple[Mapping[str, Any], tuple[State, ...]]]
    skipped: int = 0


def read_states(text: str) -> RecordedStates:
    """Return the states that ``FOLDER@TURN`` or ``FOLDER:EPISODE@TURN`` names.

    Args:
        text: As for :func:`turngym.benchmarks.recorded_states`.

    Raises:
        ConfigError: There is no such folder, episode or turn, the folder has no transcripts, or an environment may not
            be made from a file.
    """
    folder, episode, turn = _parsed(text)
    submission = load_submission(folder)
    if submission.transcripts is None:
        raise ConfigError(f"{folder} has no transcripts.jsonl: without it nothing shows that a replay is the same.")
    told = {key_of(each): each for each in submission.transcripts}
    wanted = {key: each for key, each in told.items() if _is_wanted(key, episode)}
    if not wanted:
        raise ConfigError(f"{folder} has no episode {episode}: its episodes are {_known(told)}.")
    found, skipped = [], 0
    for environment in submission.config["environments"]:
        if reason := refused(environment):
            raise ConfigError(f"episodes of {folder} cannot be continued: {reason}.")
        rows = [row for row in submission.of(environment["label"]) if key_of(row) in wanted and _is_sound(row)]
        states = [state for row in rows for state in _states_of(submission, row, wanted[key_of(row)], turn)]
        skipped += len(rows) - len({state.key for state in states})
        if states:
            found.append((environment, tuple(states)))
    if not found:
        raise ConfigError(f"no episode of {text} was still being played after turn {turn}: name an earlier turn.")
    return RecordedStates(submission.config["suite"], found, skipped)


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


def _is_wanted(key: tuple[str, int, int], episode: str) -> bool:
    return episode in ("", str(key[1]), f"{key[1]}.{key[2]}")


def _is_sound(row: Mapping[str, Any]) -> bool:
    return row["status"] != "env_error" and len(row["actions"]) > 0


def _known(told: Mapping[tuple[str, int, int], Any]) -> str:
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
