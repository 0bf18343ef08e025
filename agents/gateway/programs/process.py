"""One agent program: a process with limits, ended with everything that it started."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from turngym.agents.gateway.programs.launching import Place
from turngym.errors import ConfigError
from turngym.system.guardian import VARIABLE
from turngym.text import printable

_TAIL = 2000
_GRACE_SECONDS = 2.0
_LONGEST_OUTPUT = 2**20
"""Bytes of the standard output that can be an answer."""


class Program:
    """A running program.

    Args:
        words: Its command line.
        variables: Environment variables that it needs.
        seconds: Its time.
        place: Working directory.

    Raises:
        ConfigError: It cannot be started.
    """

    def __init__(self, words: Sequence[str], variables: Mapping[str, str], seconds: float, place: Place) -> None:
        launch = place.launch(words, variables)
        self._cleanup = launch.cleanup
        self._output, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self._deadline = time.monotonic() + seconds
        try:
            self._process = subprocess.Popen(
                launch.command,
                env=launch.environment,
                stdin=launch.stdin or subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._errors,
                start_new_session=True,
                pass_fds=launch.files,
            )
        except (OSError, ValueError) as error:
            self._close()
            raise ConfigError(f"the agent program {words[0]!r} cannot be started ({error}).") from error
        finally:
            for file in launch.files:
                os.close(file)
        self._guardian, self._mark = launch.guardian, launch.environment.get(VARIABLE, "")
        if self._guardian is not None:
            self._guardian.watch(self._process.pid)
        if launch.memory_mib:
            size = launch.memory_mib * 2**20
            with contextlib.suppress(OSError, ValueError):  # it has ended already, or has a lower limit
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (size, size))

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    @property
    def is_late(self) -> bool:
        """True if its time is over."""
        return time.monotonic() > self._deadline

    def shorten(self) -> None:
        """Give it only a moment to end by itself."""
        self._deadline = min(self._deadline, time.monotonic() + _GRACE_SECONDS)

    def tail(self) -> str:
        """Return the end of what it has printed, errors last, with what a terminal would obey as escapes."""
        parts = [_read(file, -_TAIL) for file in (self._output, self._errors)]
        return printable("\n".join(part for part in parts if part)[-_TAIL:], keep="\n")

    def output(self) -> str:
        """Return its standard output, stripped; of one that is too long the beginning."""
        return _read(self._output, _LONGEST_OUTPUT)

    def end(self) -> None:
        """End it with everything that it started; may be called twice."""
        if self._output.closed:
            return
        if self._guardian is not None:
            self._guardian.end(self._process.pid, self._mark)
        else:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._output.close()
        self._errors.close()
        self._cleanup()


def _read(file: IO[bytes], most: int) -> str:
    """Return the first bytes of a file as text, or the last ones where the number is negative; "" if it is closed."""
    if file.closed:
        return ""
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), abs(most), max(size + most, 0) if most < 0 else 0)  # the program's offset stays
    return data.decode("utf8", "replace").strip()
