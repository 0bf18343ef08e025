"""The folder of a tournament: its plan, a line for every game that is over, and the results at the end.

A line is written as soon as its game is over and is complete once it ends with a line break, so that a kill at any
moment costs at most the games that were being played.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from turngym.errors import CheckpointError, ConfigError, RunFolderExists
from turngym.storage.files import write_atomic, write_json
from turngym.storage.folders import is_free, require_folder, require_kind
from turngym.system.locks import FolderLock

_SECONDS_BETWEEN_SYNCS = 1.0
_MAY_GROW = "blocks"


class TournamentFolder:
    """Stores games, on disk or, without a folder, in memory alone.

    Args:
        path: The folder; None stores nothing.
        plan: Definition of the tournament, as JSON.
        resume: Continue with what the folder holds.

    Raises:
        RunFolderExists: The folder is not empty, and ``resume`` was not given.
        FolderInUse: Another process writes it.
        ConfigError: The folder holds another tournament, or something else.
        CheckpointError: The stored games are damaged.
    """

    def __init__(self, path: Path | None, plan: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.records: dict[str, dict[str, Any]] = {}
        """Match key -> record of every game that is over."""
        self._file: IO[bytes] | None = None
        self._lock: FolderLock | None = None
        self._synced = 0.0
        if path is None:
            if resume:
                raise ConfigError("to resume a tournament, pass the folder that it is in.")
            return
        if not path.exists():
            path.mkdir(parents=True)
        try:
            self._begin(path, plan, resume)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, plan: Mapping[str, Any], resume: bool) -> None:
        require_folder(path)
        self._lock = FolderLock(path, "tournament")
        if not is_free(path):
            if not resume:
                raise RunFolderExists(
                    f"{path} exists already and is not empty: --resume (resume=True in Python) continues with the "
                    "tournament in it, or pass another folder."
                )
            self._require_same(path, json.loads(json.dumps(plan)))
        write_json(path / "config.json", plan)
        games = path / "episodes.jsonl"
        if games.exists():
            if not games.is_file():
                raise CheckpointError(f"{games} is not a file: the folder is damaged.")
            self._read(games)
        self._file = games.open("ab")

    def _require_same(self, path: Path, plan: Mapping[str, Any]) -> None:
        require_kind(path, "tournament")
        try:
            stored = json.loads((path / "config.json").read_text("utf8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} holds no tournament to resume ({error}): pass another folder.") from error
        if not isinstance(stored, dict) or _MAY_GROW not in stored:
            raise ConfigError(f"{path} holds no tournament to resume: pass another folder.")
        mine, theirs = _flat(plan), _flat(stored)
        for key in sorted({*mine, *theirs} - {_MAY_GROW}, key=lambda key: ("." in key, key)):
            if mine.get(key) != theirs.get(key):
                raise ConfigError(
                    f"the tournament in {path} has {key} {theirs.get(key)!r}, not {mine.get(key)!r}: only the number "
                    "of blocks may change. Resume it as it was, or pass another folder."
                )
        if plan[_MAY_GROW] < stored[_MAY_GROW]:
            raise ConfigError(
                f"the tournament in {path} has {stored[_MAY_GROW]} blocks, more than {plan[_MAY_GROW]}: blocks can "
                "only be added."
            )

    def _read(self, games: Path) -> None:
        """Read the games, and cut off a line that a kill left unfinished."""
        data = games.read_bytes()
        whole = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            place = f"line {number} of {games}"
            try:
                record = json.loads(line, parse_constant=_refuse)
                self.records[record["match"]] = record
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise CheckpointError(f"{place} is not a game: the file is damaged.") from error
            self.require_record(record, place)
        if whole < len(data):
            os.truncate(games, whole)

    def require_record(self, record: Mapping[str, Any], place: str) -> None:
        """Raise if a stored game cannot be used; here all that has a match can."""

    def add(self, record: dict[str, Any]) -> None:
        """Store a game that is over."""
        self.records[record["match"]] = record
        if self._file is None:
            return
        self._file.write(_line(record))
        self._file.flush()
        now = time.monotonic()
        if now - self._synced > _SECONDS_BETWEEN_SYNCS:  # a kill loses nothing without it, a power failure would
            os.fsync(self._file.fileno())
            self._synced = now

    def close(self) -> None:
        """Close the file of games, and let others write the folder."""
        file, self._file = self._file, None
        lock, self._lock = self._lock, None
        try:
            if file is not None:
                with file:
                    file.flush()
                    os.fsync(file.fileno())
        finally:
            if lock is not None:
                lock.release()

    def finish(self, records: Sequence[Mapping[str, Any]], results: Mapping[str, Any]) -> None:
        """Put the games into the order of the schedule and write the results, which come last."""
        if self.path is None:
            return
        write_atomic(self.path / "episodes.jsonl", b"".join(map(_line, records)))
        write_json(self.path / "results.json", results)


def _flat(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with the settings inside of others under keys such as ``agents.seed``."""
    found: dict[str, Any] = {}
    for key, value in plan.items():
        inner = value if isinstance(value, dict) else {}
        found.update({f"{key}.{name}": setting for name, setting in inner.items()} or {key: value})
    return found


def _line(record: Mapping[str, Any]) -> bytes:
    """Return a line; what an action may hold beyond plain letters is escaped, line breaks of every kind among it."""
    return json.dumps(record, sort_keys=True).encode() + b"\n"


def _refuse(name: str) -> float:
    """Refuse a number that JSON does not have.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not a number of JSON")
