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

from turngym.errors import ConfigError
from turngym.trainers.settings.agent_program import ProgramConfig

_TAIL = 2000
_GRACE_SECONDS = 2.0


class Program:
    """A running program.

    Args:
        words: Its command line.
        variables: Environment variables besides those of this process.
        config: Its limits.

    Raises:
        ConfigError: It cannot be started.
    """

    def __init__(self, words: Sequence[str], variables: Mapping[str, str], config: ProgramConfig) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the program)
        self._deadline = time.monotonic() + config.seconds
        try:
            self._process = subprocess.Popen(
                words,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._output.close()
            raise ConfigError(f"the agent program {words[0]!r} cannot be started ({error}).") from error
        size = config.memory_mib * 2**20
        with contextlib.suppress(OSError, ValueError):  # it has ended already, or has a lower limit
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (size, size))

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    @property
    def is_late(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() > self._deadline

    def shorten(self) -> None:
        """Give it only a moment to end by itself."""
        self._deadline = min(self._deadline, time.monotonic() + _GRACE_SECONDS)

    def tail(self) -> str:
        """Return the end of what it has printed."""
        if self._output.closed:
            return ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(size - _TAIL, 0))
        return self._output.read().decode("utf8", "replace").strip()

    def end(self) -> None:
        """End it with everything that it started; may be called twice."""
        if self._output.closed:
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()
