"""A session of ``turngym play``: an episode with undo, hints, restart and save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turngym.agents.episodes.continuing import Beginning, RecordedTurn
from turngym.agents.recordings.states import State
from turngym.arithmetic import float_sum
from turngym.envs.core import TextEnv
from turngym.envs.transcript import transcript
from turngym.errors import ConfigError, SnapshotUnsupported, TurngymError
from turngym.storage.files import write_atomic
from turngym.wrappers.core import TextWrapper


@dataclass(frozen=True, slots=True)
class Played:
    """One turn that was played.

    Args:
        action: The action text.
        before: Snapshot of the state before it; None where the environment has none.
        reward: Its reward.
    """

    action: str
    before: bytes | None
    reward: float


@dataclass(slots=True)
class Session:
    """The episode that is being played.

    Args:
        env: The environment.
        copy: Makes a fresh copy, on which a transcript is played.
        seed: Seed of the task.
        observation: Last observation.
        info: Its info table.
        turns: Turns played, without undone ones.
        is_over: Whether the episode has ended.
        is_truncated: Whether the turn limit ended it.
        start: Recorded state that the task of its seed is continued from.
        follow: Called before each recorded turn on the way there.
    """

    env: TextEnv[Any] | TextWrapper
    copy: Callable[[], TextEnv[Any] | TextWrapper]
    seed: int
    observation: Any = None
    info: Mapping[str, Any] = field(default_factory=dict)
    turns: list[Played] = field(default_factory=list)
    is_over: bool = False
    is_truncated: bool = False
    start: State | None = None
    follow: Callable[[RecordedTurn], None] = lambda turn: None

    @property
    def total(self) -> float:
        """The return so far."""
        return float(float_sum(turn.reward for turn in self.turns))

    @property
    def text(self) -> str:
        """The text of the observation."""
        return str(self.observation["text"] if isinstance(self.observation, Mapping) else self.observation)

    @property
    def recorded(self) -> tuple[RecordedTurn, ...]:
        """The turns before the recorded state that the task of this seed is continued from."""
        return self.start.beginning.turns if self.start is not None and self.start.seed == self.seed else ()

    def begin(self, seed: int | None = None) -> None:
        """Start the task of a seed, or the same one again, from the recorded state if it has one.

        Raises:
            TurngymError: The replay differs from the recorded episode.
        """
        self.seed = self.seed if seed is None else seed
        self.observation, self.info = self.env.reset(seed=self.seed)
        self.turns, self.is_over, self.is_truncated = [], False, False
        if self.start is not None and self.start.seed == self.seed:
            for turn in self.recorded:
                self._require_recorded(self.start.beginning)
                self.follow(turn)
                self.take(turn.action)
            self._require_recorded(self.start.beginning)

    def _require_recorded(self, beginning: Beginning) -> None:
        if self.is_over:
            raise TurngymError(
                f"the replay of {beginning.name} ends after turn {len(self.turns)}: the rules have changed since. "
                "Record it again."
            )
        beginning.require_same(len(self.turns), self.text)

    def take(self, action: str) -> None:
        """Take a turn."""
        before = self._snapshot()
        self.observation, reward, terminated, truncated, self.info = self.env.step(action)
        self.turns.append(Played(action, before, reward))
        self.is_over, self.is_truncated = terminated or truncated, truncated

    def undo(self, count: int = 1) -> int:
        """Take back the last turns, and return how many there were to take back."""
        count = min(count, len(self.turns))
        if count == 0:
            return 0
        kept, snapshot = self.turns[:-count], self.turns[-count].before
        if snapshot is None:
            self.observation, self.info = self.env.reset(seed=self.seed)
            self.turns, self.is_over, self.is_truncated = [], False, False
            for turn in kept:
                self.take(turn.action)
        else:
            self.observation, self.info = self.env.restore(snapshot)
            self.turns, self.is_over, self.is_truncated = kept, False, False
        return count

    def hint(self) -> str:
        """Return the expert's action.

        Raises:
            ConfigError: The environment has no solver.
        """
        return self.env.expert_action()

    def save(self, path: Path) -> None:
        """Write the episode so far as a canonical transcript, which :func:`turngym.envs.transcript.replay` plays again.

        Turns that were taken back are not in it.

        Raises:
            ConfigError: The file exists, or cannot be written.
        """
        if path.exists():
            raise ConfigError(f"{path} exists already: pass another name.")
        with closing(self.copy()) as env:
            text = transcript(env, self.seed, [turn.action for turn in self.turns])
        try:
            write_atomic(path, text)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror or error}.") from error

    def file_name(self) -> str:
        """Return a name for the transcript."""
        name = self.env.env_id.rpartition("/")[2].rpartition(":")[2]
        return f"{name}-seed{self.seed}.txt"

    def _snapshot(self) -> bytes | None:
        try:
            return self.env.snapshot()
        except SnapshotUnsupported:
            return None


class Left(Exception):
    """The player has asked to quit."""


class NoSuchCommand(TurngymError, ValueError):
    """The text after the colon is not a valid command; the message lists what is."""
