"""An environment of random lengths and step times that writes down every reset and every step it takes."""

import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

import gymnasium

from turngym.envs.core import Outcome, TextEnv
from turngym.errors import SnapshotUnsupported
from turngym.types import JSONValue

_LONGEST_HOLD = 120.0
_held: set[str] = set()
_released = threading.Event()


@contextmanager
def held_at_the_second_step(instances: Collection[str]) -> Iterator[None]:
    """Hold episodes of these instances at their second step, in this process, until the context is left.

    The episodes must last two steps at least, and be played by threads.
    """
    _released.clear()
    _held.update(instances)
    try:
        yield
    finally:
        _held.clear()
        _released.set()


class Watched(TextEnv[str]):
    """Answer anything; longer answers earn more. An episode has between one and ``longest`` turns.

    Options:
        log: File that resets and steps are appended to, a line each: the instance, and the turn.
        seconds: Mean of the exponential distribution of a step's time.
        longest: Most turns of an episode.
        can_save: Whether its state can be saved.
        noisy: Show something else at every reset and step, also with equal seeds.
        deadly: File whose presence lets the next step kill the process, once.
    """

    instructions = "Say something."

    def __init__(
        self,
        log: str = "",
        seconds: float = 0.0,
        longest: int = 5,
        can_save: bool = True,
        noisy: bool = False,
        deadly: str = "",
        *,
        max_turns: int = 50,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.log, self.seconds, self.longest = log, seconds, longest
        self.can_save, self.noisy, self.deadly = can_save, noisy, deadly

    def _write(self, line: str) -> None:
        if self.log:
            descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{line}\n".encode())
            os.close(descriptor)

    def begin(self, task: str | int | None) -> str:
        self.instance = str(int(self.np_random.integers(2**31)))
        self.length = int(self.np_random.integers(1, self.longest + 1))
        self.count = 0
        self._write(f"reset {self.instance}")
        return self._shown()

    def _shown(self) -> str:
        return f"turn {self.count} {time.perf_counter_ns() if self.noisy else ''}"

    def apply_action(self, action: str) -> Outcome[str]:
        if self.deadly:
            with suppress(FileNotFoundError):  # of several workers one takes the file
                os.unlink(self.deadly)
                os.kill(os.getpid(), 9)
        self._write(f"step {self.instance} {self.count}")
        if self.count == 1 and self.instance in _held:
            _released.wait(_LONGEST_HOLD)
        if self.seconds:
            time.sleep(float(self.np_random.exponential(self.seconds)))
        self.count += 1
        is_over = self.count >= self.length
        return Outcome(self._shown(), len(action) % 7 / 7, is_over, is_over, True)

    def anchor(self) -> str:
        return f"turn {self.count}"

    def save_state(self) -> JSONValue:
        if not self.can_save:
            raise SnapshotUnsupported("it lives on a machine far away")
        return {"instance": self.instance, "length": self.length, "count": self.count}

    def load_state(self, state: JSONValue) -> None:
        self.instance, self.length, self.count = state["instance"], state["length"], state["count"]


gymnasium.register("test/Watched-v0", entry_point="watched_env:Watched", disable_env_checker=True)
