"""Labels of captions: a table that a labeller fills, while playing or in the background, kept in a file."""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias, cast

from turngym.arithmetic import as_float
from turngym.errors import ConfigError, TurngymError, error_text
from turngym.loading import Wanted, load_object, raised_text
from turngym.storage.files import read_content, write_json
from turngym.system.locks import file_lock

Labeller: TypeAlias = Callable[[list[str]], Sequence[float | None]]
"""Takes captions and returns a number for each, None for those that it cannot label."""
FORMAT = "turngym captions 1"
LONGEST = 500
"""Characters of a caption; the rest of a longer one is cut off."""
_LARGEST = 1e6
_MOST_LABELS = 100_000
_BATCH = 32
_MOST_TRIES = 3
_INTERVAL = 1.0
"""Seconds between two looks at the file, and at least between two writes of it."""
_REST = 20
"""Least time between two writes of the file, in times of what a write took."""
_SHARED: weakref.WeakValueDictionary[tuple[object, ...], Labels] = weakref.WeakValueDictionary()


class Labels:
    """Labels of captions.

    The file is written under a temporary name and renamed. Processes may share it: a write adds the labels of others,
    and of two labels of a caption the one in the file stays.

    Args:
        path: The file; None keeps the labels in memory.
        labeller: Labels unknown captions; None leaves them unlabelled.
        source: Maker of the labeller, which has to live as long as the table that is found by it.

    Raises:
        ConfigError: The file holds something else.

    >>> labels = Labels(None, lambda captions: [len(caption) for caption in captions])
    >>> labels.label(["a door", "a key"])
    >>> labels.known
    {'a door': 6.0, 'a key': 5.0}
    """

    def __init__(self, path: Path | None = None, labeller: Labeller | None = None, source: object = None) -> None:
        self.path = path
        self.labeller = labeller
        self._source = source
        self.known: dict[str, float] = {}
        """Caption -> label."""
        self.faults = 0
        """Calls of the labeller that failed, and labels that are not numbers."""
        self.first_fault = ""
        self._failed: Counter[str] = Counter()
        self._waiting: dict[str, None] = {}
        self._change = threading.Condition()
        self._worker: threading.Thread | None = None
        self._write_at = self._looked = -math.inf
        self._stamp = self._told = 0
        self._is_new = False
        if path is not None:
            self._read(path)

    def request(self, captions: Collection[str]) -> None:
        """Have captions labelled in the background, and return immediately."""
        self._look()
        with self._change:
            if len(self._waiting) < _MOST_LABELS:  # more if the labeller hangs
                self._waiting.update((each, None) for each in captions if self._is_wanted(each))
            self._change.notify_all()
            if self._waiting and (self._worker is None or not self._worker.is_alive()):  # a fork has no threads
                self._worker = threading.Thread(target=self._work, name="turngym-captions", daemon=True)
                self._worker.start()

    def label(self, captions: Collection[str]) -> None:
        """Label captions now."""
        wanted = [each for each in captions if self._is_wanted(each)]
        if wanted:
            self._ask(wanted)

    def join(self, seconds: float = 60.0) -> bool:
        """Wait until the requested captions are labelled; return whether they are."""
        with self._change:
            return self._change.wait_for(lambda: not self._waiting, seconds)

    def flush(self) -> None:
        """Write new labels and faults to the file; a file that cannot be written counts as a fault."""
        if self.path is None or not (self._is_new or self.faults > self._told):
            return
        began, self._is_new = time.monotonic(), False
        try:
            self._write(self.path)
        except (OSError, ValueError) as error:  # such as a path that no system has
            self._fault(error)
        now = time.monotonic()
        self._write_at = now + max(_INTERVAL, _REST * (now - began))

    def _is_wanted(self, caption: str) -> bool:
        is_open = self._failed[caption] < _MOST_TRIES and len(self.known) + len(self._failed) < _MOST_LABELS
        return self.labeller is not None and is_open and caption not in self.known

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self.label(batch)
            finally:
                with self._change:
                    for each in batch:
                        del self._waiting[each]
                    self._change.notify_all()

    def _next_batch(self) -> list[str]:
        """Return captions to label; none, after the write that is due, if there are none."""
        with self._change:
            rest = self._write_at - time.monotonic() if self._is_new else 0.0
            self._change.wait_for(lambda: self._waiting, max(rest, 0.0))
            batch = list(self._waiting)[:_BATCH]
            if not batch:
                self._worker = None
        if not batch:
            self.flush()  # the wrappers may have been closed before the last labels came
        return batch

    def _ask(self, captions: list[str]) -> None:
        """Ask the labeller; what fails stays unlabelled and is asked for again when it is next seen."""
        assert self.labeller is not None
        try:
            labels = list(self.labeller(list(captions)))
            if len(labels) != len(captions):
                raise ConfigError(f"the labeller returned {len(labels)} labels for {len(captions)} captions.")
        except (Exception, SystemExit) as error:  # user code: anything may be raised
            self._fault(error)
            self._failed.update(captions)
            labels = []
        for caption, label in zip(captions, labels, strict=False):  # none after a failure
            if _is_label(label):
                self.known[caption] = as_float(label)
                self._is_new = True
                continue
            self._failed[caption] += 1
            if label is not None:
                self._fault(ConfigError(f"the label of {caption!r:.80} must be a number, got {label!r:.80}."))
        if time.monotonic() >= self._write_at:
            self.flush()

    def _fault(self, error: BaseException) -> None:
        self.faults += 1
        self.first_fault = self.first_fault or error_text(error)

    def _look(self) -> None:
        """Read the file again if another process has written it."""
        now = time.monotonic()
        if self.path is None or now - self._looked < _INTERVAL:
            return
        self._looked = now
        with suppress(OSError):
            if self.path.stat().st_mtime_ns != self._stamp:
                try:
                    self._read(self.path)
                except ConfigError as error:
                    self._fault(error)

    def _read(self, path: Path) -> int:
        """Add the labels of the file, if there is one; return the faults counted there."""
        if not path.exists():
            return 0
        self._stamp = path.stat().st_mtime_ns
        labels, faults = _content(path)
        self.known.update(labels)
        return faults

    def _write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path):
            faults = self._read(path) + self.faults - self._told
            counts = {"faults": faults, "first_fault": self.first_fault}
            write_json(path, {"format": FORMAT, "labels": dict(self.known), **counts})
            self._told, self._stamp = self.faults, path.stat().st_mtime_ns


def _is_label(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(as_float(value)) <= _LARGEST


def _content(path: Path) -> tuple[dict[str, float], int]:
    """Return the labels in a file, and the faults counted there.

    Raises:
        ConfigError: It cannot be read, or holds something else.
    """
    try:
        content = read_content(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the labels in {path} could not be read ({error}).") from error
    labels = content.get("labels") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(labels, dict) or not all(_is_label(each) for each in labels.values()):
        raise ConfigError(f"{path} holds no labels of captions: pass a new file, or one that caption_reward wrote.")
    faults = content.get("faults", 0)
    return {caption: float(label) for caption, label in labels.items()}, faults if type(faults) is int else 0


_LABELLER = Wanted("a labeller", "a function of a list of captions, or a class of such", callable)


def labeller_of(labeller: str | Callable[..., Any], options: Mapping[str, Any]) -> Labeller | None:
    """Return a labeller; None for an empty name.

    Args:
        labeller: ``module:name`` or ``path/to/file.py:name`` of a function, or of a class or function that makes one
            from the options; or the function itself.
        options: Arguments for what makes one; empty for a function that is the labeller.

    Raises:
        UnknownName: There is no such module, file or name.
        ConfigError: It makes something that cannot be called.
    """
    if not labeller:
        return None
    found: Callable[..., Any] = load_object(labeller, _LABELLER) if isinstance(labeller, str) else labeller
    try:
        made: object = found(**options) if options or isinstance(found, type) else found
    except TurngymError:
        raise
    except Exception as error:  # user code: anything may be raised
        raise ConfigError(
            f"the labeller {labeller!r} could not be made with labeller_options={dict(options)!r:.200}: "
            f"{raised_text(error)}."
        ) from error
    if not callable(made):
        raise ConfigError(f"the labeller {labeller!r} must be a function of a list of captions, got {made!r:.80}.")
    return cast("Labeller", made)


def shared_labels(path: str, labeller: str | Callable[..., Any], options: Mapping[str, Any]) -> Labels:
    """Return the table of a file and a labeller, the same for all environments of this process that use it now.

    Args:
        path: The file; empty for none.
        labeller: As for :func:`labeller_of`.
        options: As for :func:`labeller_of`.

    Raises:
        UnknownName: There is no such labeller.
        ConfigError: The file holds something else, or the labeller cannot be made.
    """
    place = os.path.abspath(path) if path else ""
    key = os.getpid(), place, labeller if isinstance(labeller, str) else id(labeller), repr(sorted(options.items()))
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = Labels(Path(place) if place else None, labeller_of(labeller, options), labeller)
    return found


@atexit.register
def _flush_all() -> None:
    for labels in list(_SHARED.values()):
        labels.flush()
