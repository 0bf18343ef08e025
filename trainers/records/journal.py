"""An append-only journal of JSON lines in segments, of which checkpoints start new ones."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.errors import CheckpointError
from turngym.storage.files import truncate_torn_line, write_atomic

_SYNC_SECONDS = 1.0
_SUFFIX = ".jsonl"


class Journal:
    """Appends records, each about a group of episodes, and forgets those of groups that are over at the next segment.

    A record is a mapping with the key ``group``, or without it where it is about the run. A segment is named after the
    checkpoint that it belongs to; it starts with all records of groups that were not over then, so that a checkpoint is
    resumed from its own segment and the later ones. Lines are written at once, so that they survive the end of this
    process, and flushed to disk every second or on demand, so that they survive that of the machine.

    Args:
        folder: Folder of segments; created with the first record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes = 0
        """Bytes written so far."""
        self.seconds = 0.0
        """Seconds spent on writing so far."""
        self._live: dict[int, list[bytes]] = {}
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._synced = 0.0

    # Reading.

    def segments(self) -> list[int]:
        """Return the numbers of the segments, in order."""
        return sorted(int(path.stem) for path in self.folder.glob(f"[0-9]*{_SUFFIX}"))

    def read(self, iteration: int) -> list[dict[str, Any]]:
        """Return the records that belong to the checkpoint of an iteration, and those since; nothing without a journal.

        A last line that a kill cut short is left out.

        Raises:
            CheckpointError: Another line is damaged.
        """
        before = [number for number in self.segments() if number <= iteration]
        if not before:
            return []
        return [record for number in self.segments() if number >= before[-1] for record in _records(self._path(number))]

    # Writing.

    def open(self, iteration: int) -> None:
        """Continue with the newest segment; without one of this iteration or before, start one and delete the others.

        A torn last line is cut.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        found = self.segments()
        if found and found[0] > iteration:
            for number in found:
                self._path(number).unlink()
            found = []
        with self._lock:
            self._use(found[-1] if found else iteration)

    def keep(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Take over records that were read, for the segments to come."""
        with self._lock:
            for record in records:
                if "group" in record:
                    self._live.setdefault(record["group"], []).append(_line(record))

    def append(self, records: Sequence[Mapping[str, Any]], *, sync: bool = False) -> None:
        """Append some records at once.

        Args:
            records: Data to write.
            sync: Flush to disk before returning.
        """
        began = time.perf_counter()
        lines = [_line(record) for record in records]
        with self._lock:
            for record, line in zip(records, lines, strict=True):
                if "group" in record:
                    self._live.setdefault(record["group"], []).append(line)
            if self._descriptor is not None:
                self._write(b"".join(lines), sync)
            self.seconds += time.perf_counter() - began

    def forget(self, groups: Sequence[int]) -> None:
        """Leave groups that are over out of the segments to come."""
        with self._lock:
            for group in groups:
                self._live.pop(group, None)

    def start_segment(self, iteration: int, header: Mapping[str, Any], oldest: int) -> None:
        """Start the segment of a checkpoint with a header and the groups that are not over; delete what is not needed.

        Args:
            iteration: The checkpoint.
            header: First record of the segment.
            oldest: The oldest checkpoint that may be resumed.
        """
        with self._lock:
            lines = [_line(header), *(line for group in sorted(self._live) for line in self._live[group])]
            write_atomic(self._path(iteration), b"".join(lines))
            if self._descriptor is not None:
                self._use(iteration)
        needed = max([number for number in self.segments() if number <= oldest], default=0)
        for number in self.segments():
            if number < needed:
                self._path(number).unlink()

    def close(self) -> None:
        """Flush and close the file; later records are kept for segments to come only."""
        with self._lock:
            self._release()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}{_SUFFIX}"

    def _use(self, number: int) -> None:
        self._release()
        descriptor = os.open(self._path(number), os.O_RDWR | os.O_CREAT, 0o666)
        os.lseek(descriptor, truncate_torn_line(descriptor), os.SEEK_SET)
        self._descriptor = descriptor

    def _release(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: bytes, sync: bool) -> None:
        assert self._descriptor is not None
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        self.bytes += len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)
            raise
        now = time.monotonic()
        if sync or now - self._synced > _SYNC_SECONDS:
            os.fsync(self._descriptor)
            self._synced = now


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the records of the whole lines of a segment.

    Raises:
        CheckpointError: One of them is damaged.
    """
    content = path.read_bytes()
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise CheckpointError(
                f"line {number} of {path} is damaged: delete the folder {path.parent}, and --resume plays the episodes "
                "since the checkpoint again."
            ) from error
    return found


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
