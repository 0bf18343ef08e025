"""Tasks of other packages as training data: the package plays and scores them in its own Python, with our model.

A package is one file here that registers a :class:`TaskPackage`, and one in ``base`` that its interpreter runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from turngym.errors import ConfigError, MissingExtra
from turngym.registry import Registry
from turngym.storage.files import cache_folder, write_atomic
from turngym.system.scratch import scratch_root
from turngym.text import printable

_ENTRY = Path(__file__).parent / "base" / "entry.py"
_LIST_SECONDS = 600.0
_MOST_ERRORS = 100_000
"""Bytes at the end of the errors that are read."""
_MISSING, _MARK = 3, "turngym: "
"""Exit status of the entry where the package is not installed, and beginning of the line that says what is wrong."""


class TaskPackage(NamedTuple):
    """A package whose tasks can be trained on.

    Args:
        script: File with its functions ``tasks`` and ``play``, run by the interpreter that has the package.
        form: Form of the name of a task or a set of them.
        requirement: Name of the package for pip.
    """

    script: Path
    form: str
    requirement: str


PACKAGES: Registry[TaskPackage] = Registry("task package", __name__)
"""Name -> package."""


class Source(NamedTuple):
    """Tasks of a package.

    Args:
        name: ``KIND:TASKS``, such as ``inspect:arithmetic.py@sums``.
        options: Options of the tasks, ``name=value``.
        python: Interpreter that has the package; empty for this one.

    >>> Source("inspect:sums.py@sums").kind
    'inspect'
    """

    name: str
    options: tuple[str, ...] = ()
    python: str = ""

    @property
    def kind(self) -> str:
        """Name of the package in :data:`PACKAGES`."""
        return self.name.partition(":")[0]

    @property
    def file(self) -> Path:
        """File of the list of tasks, which :meth:`write` writes."""
        name = hashlib.sha256(json.dumps(self).encode()).hexdigest()[:20]
        return cache_folder("tasks") / f"{name}.jsonl"

    def check(self) -> None:
        """Check the name and the options.

        Raises:
            UnknownName: There is no such package.
            ConfigError: No tasks are named, or an option has no value.
        """
        package = PACKAGES[self.kind]
        if not self.name.partition(":")[2]:
            raise ConfigError(f"{self.name!r} names no tasks: pass {self.kind}:{package.form}.")
        for option in self.options:
            if not option.partition("=")[0] or "=" not in option:
                raise ConfigError(f"options of tasks are name=value, got {option!r}.")

    def words(self, verb: str, *more: str) -> list[str]:
        """Return the command that lists the tasks, or plays one."""
        script = PACKAGES[self.kind].script
        return [
            *(self.python or sys.executable, str(_ENTRY), str(script), verb),
            *(self.name.partition(":")[2], *more, *self.options),
        ]

    def write(self) -> None:
        """Let the package list its tasks, and write them to :attr:`file`.

        Raises:
            MissingExtra: The package is not installed there.
            ConfigError: There is no such interpreter, or no such tasks.
        """
        found = scratch_root() / self.file.name
        status, said = self._listed(found)
        if status:
            raise self._refused(status, printable(said.strip(), keep="\n"))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self.file, found.read_text("utf8"))
        found.unlink()

    def _listed(self, found: Path) -> tuple[int, str]:
        """Return exit status and errors of the process that lists the tasks; what it has started ends with it."""
        words = self.words("list", str(found))
        with tempfile.TemporaryFile() as errors:  # unlike a pipe, nothing that it leaves behind holds this up
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(
                    f"the interpreter {self.python!r} cannot be started ({error.strerror}): pass the path of a Python "
                    "that has the package, such as VENV/bin/python."
                ) from error
            try:
                status = process.wait(_LIST_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise ConfigError(f"{self.name} was not listed in {_LIST_SECONDS:g} seconds.") from error
            finally:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            size = errors.seek(0, os.SEEK_END)
            errors.seek(max(size - _MOST_ERRORS, 0))
            return status, errors.read().decode("utf8", "replace")

    def _refused(self, status: int, said: str) -> Exception:
        lines = [line.removeprefix(_MARK) for line in said.splitlines() if line.startswith(_MARK)]
        last = lines[-1:] or said.splitlines()[-1:] or ["it printed nothing"]
        if status == _MISSING:
            package = PACKAGES[self.kind]
            return MissingExtra(
                f"{self.python or sys.executable} has no package for {self.kind} ({last[0]}): install it in an "
                f"environment of its own (pip install {package.requirement}), and pass --agent.python "
                "VENV/bin/python."
            )
        return ConfigError(f"the tasks of {self.name} cannot be listed: {last[0][:500]}")
