"""Other processes that replay the recorded actions: with another hash seed, clock or environment variables."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import cloudpickle

from turngym.envs.checks.case import Case, begin, follow
from turngym.envs.checks.rule import Skipped
from turngym.system.scratch import scratch_root

_ClockKind: TypeAlias = Literal["", "shifted", "frozen"]
_TIMEOUT_SECONDS = 300.0
_OTHER_VALUE = "7"


@dataclass(frozen=True, slots=True)
class Setting:
    """Differences in another process.

    Args:
        hash_seed: Its hash seed, which decides the order of sets.
        clock: Its clock.
        variables: Environment variables that have another value.
        twice: Whether a second copy replays everything.
    """

    hash_seed: str = "1"
    clock: _ClockKind = ""
    variables: tuple[str, ...] = ()
    twice: bool = False


@dataclass(slots=True)
class ProcessResult:
    """Results of another process.

    Args:
        error: Exception, empty if there is none.
        kind: Where: ``"making"`` before there was a maker, ``"refused"`` an error of turngym, ``"playing"`` any other.
        episodes: The texts of each recorded episode.
        again: The same by a second copy.
        branches: The texts of each branch from a snapshot.
        variables: Environment variables that the author's modules read.
        left: Temporary files that were left behind.
    """

    error: str = ""
    kind: str = ""
    episodes: list[list[str]] = field(default_factory=list)
    again: list[list[str]] = field(default_factory=list)
    branches: list[list[str]] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    folder: tempfile.TemporaryDirectory[str]


@dataclass(frozen=True, slots=True)
class Branch:
    """A snapshot to continue from in another process.

    Args:
        seed: Seed of the episode.
        turn: Turn at which the snapshot was taken.
        snapshot: The snapshot.
        actions: The actions from there on.
        expected: Results in this process.
    """

    seed: int | None
    turn: int
    snapshot: bytes
    actions: list[str]
    expected: list[str]


class Elsewhere:
    """The other processes of one check; each setting is run once unless ``anew`` is set.

    Args:
        case: The environment, with its recorded episodes.

    Raises:
        Skipped: Other processes are disabled, or the environment's factory cannot be sent to one.
    """

    def __init__(self, case: Case) -> None:
        if case.in_process:
            raise Skipped("other processes were not asked for")
        try:
            maker = cloudpickle.dumps(case.maker)
        except Exception as error:  # the factory may hold anything
            raise Skipped(
                f"the function that makes it cannot be sent to another process ({type(error).__name__}: {error}): "
                f"pass an id, a class or a function of a module"
            ) from error
        self.branches = _branches(case)
        self._task: dict[str, Any] = {
            "path": list(sys.path),
            "maker": maker,
            "episodes": [(episode.seed, episode.actions) for episode in case.recorded],
            "snapshots": [(branch.snapshot, branch.actions) for branch in self.branches],
        }
        self._running: dict[Setting, _Running] = {}
        self._seen: dict[Setting, ProcessResult] = {}

    def start(self, setting: Setting) -> None:
        """Start a process without waiting for it."""
        if setting in self._running or setting in self._seen:
            return
        folder = tempfile.TemporaryDirectory(prefix="check-", dir=scratch_root())
        own = Path(folder.name)
        (own / "tmp").mkdir()
        details = {"clock": setting.clock, "twice": setting.twice, "result": str(own / "result.json")}
        (own / "task").write_bytes(pickle.dumps(self._task | details))
        variables = os.environ | {"PYTHONHASHSEED": setting.hash_seed}
        variables |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(own / "tmp"))
        variables |= dict.fromkeys(setting.variables, _OTHER_VALUE)
        with (own / "task").open("rb") as task, (own / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "turngym.envs.checks.child"],
                stdin=task,
                stdout=said,
                stderr=said,
                env=variables,
            )
        self._running[setting] = _Running(process, folder)

    def run(self, setting: Setting, *, anew: bool = False) -> ProcessResult:
        """Return what a process with that setting saw.

        Args:
            setting: Differences there.
            anew: Whether to start a new process even if that setting has been run already.
        """
        if anew:
            self._seen.pop(setting, None)
        if setting not in self._seen:
            self.start(setting)
            self._seen[setting] = _collect(self._running.pop(setting))
        return self._seen[setting]

    def stop(self) -> None:
        """End what still runs."""
        while self._running:
            _, running = self._running.popitem()
            running.process.kill()
            running.process.wait()
            running.folder.cleanup()


def _collect(running: _Running) -> ProcessResult:
    """Wait for a process and read what it saw."""
    own = Path(running.folder.name)
    try:
        running.process.wait(_TIMEOUT_SECONDS)
        result = own / "result.json"
        if result.exists():
            return ProcessResult(**json.loads(result.read_text(encoding="ascii")))
        said = (own / "said").read_text(encoding="utf8", errors="replace").strip().splitlines()
        return ProcessResult(
            f"the process ended with status {running.process.returncode}: {' '.join(said[-1:])}", "making"
        )
    except subprocess.TimeoutExpired:
        return ProcessResult(f"the process was not done after {_TIMEOUT_SECONDS:g} s", "playing")
    finally:
        running.process.kill()
        running.process.wait()
        running.folder.cleanup()


def _branches(case: Case) -> list[Branch]:
    """Return one branch of the first episode, from its middle; none if there are no snapshots."""
    episode = case.first
    turn = len(episode.actions) // 2
    begun = begin(case.env, episode.seed)
    follow(case.env, begun, episode.actions[:turn])
    try:
        snapshot = case.env.get_wrapper_attr("snapshot")()
    except Exception:  # judged by its own rule
        return []
    if not isinstance(snapshot, bytes):
        return []
    return [Branch(episode.seed, turn, snapshot, episode.actions[turn:], episode.texts[turn + 1 :])]


def elsewhere(case: Case) -> Elsewhere:
    """Return the other processes of a case; two of them are started immediately.

    Raises:
        Skipped: There can be none.
    """
    if "elsewhere" not in case.facts:
        try:
            case.facts["elsewhere"] = found = Elsewhere(case)
        except Skipped as reason:
            case.facts["elsewhere"] = reason
        else:
            found.start(PLAIN)
            found.start(SHIFTED)
    if isinstance(case.facts["elsewhere"], Skipped):
        raise case.facts["elsewhere"]
    return case.facts["elsewhere"]  # type: ignore[no-any-return]


def stop_processes(case: Case) -> None:
    """End the other processes that still run."""
    if isinstance(case.facts.get("elsewhere"), Elsewhere):
        case.facts["elsewhere"].stop()


PLAIN = Setting("2")
SHIFTED = Setting("1", "shifted")
