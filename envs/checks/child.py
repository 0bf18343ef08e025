"""The program of a second process: it replays the recorded actions of a check and writes what it saw.

Run as ``python -m turngym.envs.checks.child`` with a task on the standard input. The task comes from the check itself,
run by the same user; no other input is read.
"""

from __future__ import annotations

import datetime
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from turngym.envs.checks.case import Env, Maker, begin, follow, inner, replay
from turngym.envs.checks.rule import raised
from turngym.errors import TurngymError

_SHIFT_SECONDS = 4321.4 * 86400
_FROZEN_SECONDS, _TICK_SECONDS = 1e9, 0.01
_ELAPSED = ("monotonic", "perf_counter")
_FRAMEWORK = ("turngym.envs.core", "turngym.envs.pictures", "gymnasium", "abc", "typing", "builtins", "collections")


class Clock:
    """Replaces the clocks of this process, for modules that are imported from now on.

    Args:
        is_frozen: Whether the clocks start at a fixed moment and advance by calls, instead of being set forward.
    """

    def __init__(self, *, is_frozen: bool) -> None:
        self._calls = 0
        shown = self._tick if is_frozen else _put_forward(time.time)
        _replace_clock("time", shown)
        for name in _ELAPSED:
            _replace_clock(name, self._tick if is_frozen else _put_forward(getattr(time, name)))
        _replace_dates(shown)

    def _tick(self) -> float:
        self._calls += 1
        return _FROZEN_SECONDS + self._calls * _TICK_SECONDS

    def restart(self) -> None:
        """Reset a frozen clock."""
        self._calls = 0


def _put_forward(clock: Callable[[], float]) -> Callable[[], float]:
    return lambda: clock() + _SHIFT_SECONDS


def _replace_clock(name: str, shown: Callable[[], float]) -> None:
    setattr(time, name, shown)
    setattr(time, f"{name}_ns", lambda: int(shown() * 1e9))


def _replace_dates(shown: Callable[[], float]) -> None:
    """Let dates follow a clock; what they return are still dates."""

    class Moved(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(shown(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(shown(), datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(shown())

    class MovedDate(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(shown())

    for name, kind in (("datetime", Moved), ("date", MovedDate)):
        setattr(datetime, name, kind)


class Readings:
    """Records which environment variables are read, and by which module."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []
        kind: Any = type(os.environ)
        original = kind.__getitem__

        def recording(environ: Any, name: str) -> Any:
            self._found.append((name, _caller(sys._getframe(1))))
            return original(environ, name)

        kind.__getitem__ = recording

    def by(self, env: Env) -> list[str]:
        """Return the variables read by the modules of the environment's author."""
        own = _author_modules(env)
        return sorted({name for name, module in self._found if module in own or module.partition(".")[0] in own})


def _caller(frame: FrameType | None) -> str:
    """Return the calling module, skipping frames of the standard library."""
    while frame is not None and frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")) if frame else ""


def _author_modules(env: Env) -> set[str]:
    """Return the modules of the environment's classes, and the packages of those that are not turngym's."""
    modules = {kind.__module__ for kind in type(inner(env)).__mro__}
    own = {name for name in modules if name not in _FRAMEWORK and name.partition(".")[0] not in _FRAMEWORK}
    return own | {name.partition(".")[0] for name in own if not name.startswith("turngym.")}


def play(task: dict[str, Any], maker: Maker, clock: Clock | None, readings: Readings) -> dict[str, Any]:
    """Play what the task says and return what was seen."""
    env = maker()
    try:
        seen: dict[str, Any] = {"episodes": [replay(env, seed, actions) for seed, actions in task["episodes"]]}
        if task["twice"]:
            if clock is not None:
                clock.restart()
            twin = maker()
            seen["again"] = [replay(twin, seed, actions) for seed, actions in task["episodes"]]
            twin.close()
        seen["branches"] = [_branch(env, snapshot, actions) for snapshot, actions in task["snapshots"]]
        seen["variables"] = readings.by(env)
    finally:
        env.close()
    seen["left"] = _left_files(task, maker)
    return seen


def _branch(env: Env, snapshot: bytes, actions: list[str]) -> list[str]:
    """Restore a snapshot, continue, and return what was seen; an error is returned as text."""
    try:
        episode = begin(env)  # wrappers need a reset first
        env.get_wrapper_attr("restore")(snapshot)
        return follow(env, episode, actions)[1:]
    except Exception as error:  # the finding itself
        return [f"raised {raised(error)}"]


def _left_files(task: dict[str, Any], maker: Maker) -> list[str]:
    """Return the temporary files that a second copy left behind; what all copies share is not a leak."""
    folder = Path(tempfile.gettempdir())
    before = set(folder.iterdir())
    if not before:
        return []
    env = maker()
    replay(env, *task["episodes"][0])
    env.close()
    return sorted(path.name for path in set(folder.iterdir()) - before)


def main() -> None:
    """Read the task, play, write what was seen."""
    task = pickle.load(sys.stdin.buffer)  # written by the check that started this process
    sys.path[:] = task["path"]
    clock = Clock(is_frozen=task["clock"] == "frozen") if task["clock"] else None
    readings = Readings()
    seen: dict[str, Any] = {"error": "", "kind": ""}
    maker = None
    try:
        maker = pickle.loads(task["maker"])
        seen |= play(task, maker, clock, readings)
    except Exception as error:  # reported to the parent process
        kind = "making" if maker is None else "refused" if isinstance(error, TurngymError) else "playing"
        seen |= {"error": raised(error), "kind": kind}
    Path(task["result"]).write_text(json.dumps(seen), encoding="ascii")


if __name__ == "__main__":
    main()
