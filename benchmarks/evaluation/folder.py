"""The folder of a running evaluation: it holds every finished episode, so a kill loses none of them.

A transcript is written before the line of its episode, and a line counts once it ends with a line break. An episode
whose transcript a power failure took is played again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from turngym.errors import CheckpointError, ConfigError, RunFolderExists
from turngym.storage.files import write_json
from turngym.storage.folders import is_free, require_folder, require_kind
from turngym.system.locks import FolderLock

Key = tuple[str, int, int]
"""An episode: label of the environment, number of the task in it, attempt at the task."""

_SECONDS_BETWEEN_SYNCS = 1.0
_MAY_DIFFER = frozenset({"execution", "hardware", "packages", "agent_details"})
_SERVER_MAY_DIFFER = frozenset(
    {"concurrency", "retries", "timeout", "deadline", "wait", "longest_wait", "key_variable", "prices", "max_cost"}
)


def require_free(path: Path) -> None:
    """Raise unless a folder is absent or empty.

    Raises:
        RunFolderExists: It holds something, or is a file.
    """
    require_folder(path)
    if not is_free(path):
        raise RunFolderExists(
            f"{path} exists already and is not empty: --resume (resume=True in Python) continues with the evaluation "
            "in it, or pass another folder as --out (out)."
        )


def key_of(row: Mapping[str, Any]) -> Key:
    """Return which episode a line is of."""
    return str(row["label"]), int(row["task"]), int(row["attempt"])


class _Lines:
    """A file of JSON lines that grows at its end, known by the place of each line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[Key, tuple[int, int]] = {}
        self._file: IO[bytes] = path.open("a+b")

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, and cut off a line that a kill left unfinished."""
        self._file.seek(0)
        start = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                self._file.truncate(start)
                break
            try:
                row = json.loads(line)
                self.places[key_of(row)] = start, len(line)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise CheckpointError(
                    f"line {number} of {self.path} is not an episode: the file is damaged."
                ) from error
            yield row
            start += len(line)

    def read_one(self, key: Key) -> dict[str, Any]:
        """Return one row."""
        start, length = self.places[key]
        self._file.seek(start)
        found: dict[str, Any] = json.loads(self._file.read(length))
        return found

    def add(self, key: Key, row: Mapping[str, Any]) -> None:
        """Write a row."""
        # a lone surrogate, which an action may hold, becomes its escape: in JSON that is the same string
        line = json.dumps(row, ensure_ascii=False, sort_keys=True).encode("utf8", "backslashreplace") + b"\n"
        self._file.seek(0, os.SEEK_END)
        self.places[key] = self._file.tell(), len(line)
        self._file.write(line)
        self._file.flush()

    def sync(self) -> None:
        """Flush to disk, so that a power failure loses nothing either."""
        os.fsync(self._file.fileno())

    def sort(self, order: Sequence[Key]) -> None:
        """Put the lines into an order and leave all others out; a kill meanwhile leaves the file as it was."""
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                for key in order:
                    start, length = self.places[key]
                    self._file.seek(start)
                    file.write(self._file.read(length))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class EvaluationFolder:
    """Keeps finished episodes, on disk or, without a folder, in memory alone.

    Args:
        path: The folder; None keeps the episodes' rows in memory and no transcripts.
        config: Environments to evaluate, as JSON.
        metadata: Agent and time; on resume, the stored ones apply.
        resume: Continue with what the folder holds, if it holds something.
        keeps_transcripts: Without a folder, keep the transcripts in memory.

    Raises:
        RunFolderExists: The folder is not empty and ``resume`` was not given.
        FolderInUse: Another process writes it.
        ConfigError: The folder holds another evaluation, or something else.
        CheckpointError: The stored episodes are damaged.
    """

    def __init__(
        self,
        path: Path | None,
        config: Mapping[str, Any],
        metadata: Mapping[str, Any],
        resume: bool = False,
        keeps_transcripts: bool = False,
    ) -> None:
        self.path = path
        self.metadata = dict(metadata)
        self.rows: dict[str, dict[Key, dict[str, Any]]] = {}
        """Player -> episode -> row; the player whom the evaluation is about has the empty name."""
        self._synced = 0.0
        self._kept: dict[Key, Mapping[str, Any]] | None = {} if path is None and keeps_transcripts else None
        self._files: dict[str, _Lines] = {}
        self._lock: FolderLock | None = None
        if path is None:
            return
        require_folder(path)
        if not is_free(path):
            if not resume:
                require_free(path)
            require_same(path, json.loads(json.dumps(config)))
        path.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(path, "evaluation")
        try:
            self._begin(path, config, resume)
            self._open(path)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, config: Mapping[str, Any], resume: bool) -> None:
        if is_free(path):
            write_json(path / "config.json", config)
            write_json(path / "metadata.json", self.metadata)
            return
        if not resume:
            require_free(path)
        require_same(path, json.loads(json.dumps(config)))
        if (path / "metadata.json").exists():
            self.metadata = json.loads((path / "metadata.json").read_text("utf8"))

    def _open(self, path: Path) -> None:
        self._files["episodes"] = _Lines(path / "episodes.jsonl")
        self._files["transcripts"] = _Lines(path / "transcripts.jsonl")
        told = {key_of(row) for row in self._files["transcripts"].read()}
        rows = {key_of(row): row for row in self._files["episodes"].read()}
        self.rows[""] = {key: row for key, row in rows.items() if key in told}
        if (path / "baselines.jsonl").exists():
            self._open_baselines(path)

    def _open_baselines(self, path: Path) -> None:
        self._files["baselines"] = _Lines(path / "baselines.jsonl")
        for row in self._files["baselines"].read():
            self.rows.setdefault(row["player"], {})[key_of(row)] = row

    def of(self, player: str) -> dict[Key, dict[str, Any]]:
        """Return the finished episodes of a player."""
        return self.rows.setdefault(player, {})

    def add(self, player: str, row: dict[str, Any], transcript: Mapping[str, Any] | None = None) -> None:
        """Keep a finished episode.

        Args:
            player: Name of a baseline, or empty.
            row: The episode's line.
            transcript: Its turns; baselines have none.
        """
        key = key_of(row)
        self.of(player)[key] = row
        if self._kept is not None and not player and transcript is not None:
            self._kept[key] = transcript
        if self.path is None:
            return
        if player:
            if "baselines" not in self._files:
                self._open_baselines(self.path)
            self._files["baselines"].add(key, {**row, "player": player})
        else:
            self._files["transcripts"].add(key, transcript or {})
            self._files["episodes"].add(key, row)
        now = time.monotonic()
        if now - self._synced > _SECONDS_BETWEEN_SYNCS:
            self.sync()
            self._synced = now

    def transcript(self, key: Key) -> Mapping[str, Any]:
        """Return the turns of a finished episode."""
        return self._files["transcripts"].read_one(key) if self._kept is None else self._kept[key]

    def sync(self) -> None:
        """Flush everything to disk, transcripts before the episodes that need them."""
        for name in ("transcripts", "episodes", "baselines"):
            if name in self._files:
                self._files[name].sync()

    def note_played(self, now: str) -> None:
        """Record when the agent's own episodes ended, before any baseline is played."""
        self.metadata["played"] = now
        if self.path is not None:
            write_json(self.path / "metadata.json", self.metadata)

    def finish(self, order: Sequence[Key], metadata: Mapping[str, Any], results: Mapping[str, Any]) -> None:
        """Put the episodes into the order of the plan and write the results, which come last."""
        if self.path is None:
            return
        self.sync()
        there = [key for key in order if key in self.of("")]
        for name in ("transcripts", "episodes"):
            self._files[name].sort(there)
        write_json(self.path / "metadata.json", metadata)
        write_json(self.path / "results.json", results)

    def close(self) -> None:
        """Close the files; calling it twice is harmless."""
        try:
            with ExitStack() as stack:
                for file in self._files.values():
                    stack.callback(file.close)
        finally:
            self._files = {}
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def require_same(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a folder that holds another evaluation than ``config`` describes.

    Raises:
        ConfigError: It holds another one, or none.
    """
    try:
        require_kind(path, "evaluation")
        stored = json.loads((path / "config.json").read_text("utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} holds no evaluation to resume ({error}): pass another folder as --out.") from error
    if not isinstance(stored, dict) or "environments" not in stored:
        raise ConfigError(f"{path} holds no evaluation to resume: pass another folder as --out.")
    require_equal(f"the evaluation in {path}", config, stored)


def require_equal(what: str, config: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Refuse to resume something that was begun with settings that decide otherwise what is played.

    Raises:
        ConfigError: A setting differs.
    """
    mine, theirs = comparable(config), comparable(stored)
    for key in sorted({*mine, *theirs}):
        if mine.get(key) != theirs.get(key):
            raise ConfigError(
                f"{what} has {key} {_short(theirs.get(key))}, not {_short(mine.get(key))}: resume it "
                "as it was started, or pass another folder as --out."
            )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def comparable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a configuration that decides what is played, settings in settings under dotted names.

    >>> comparable({"agent": "random", "sampling": {"seed": 1, "server": {"retries": 3}}, "hardware": {}})
    {'agent': 'random', 'sampling.seed': 1, 'sampling.server': {}}
    """
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key == "environments" and isinstance(value, list):
            found.update({f"environments.{i}.{k}": v for i, each in enumerate(value) for k, v in dict(each).items()})
        elif key not in _MAY_DIFFER:
            found.update({f"{key}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {key: value})
    server = found.get("sampling.server")
    if isinstance(server, dict):
        found["sampling.server"] = {name: value for name, value in server.items() if name not in _SERVER_MAY_DIFFER}
    return found
