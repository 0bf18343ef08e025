"""A worker process as the vector sees it: started, talked to, ended together with all that it has started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

from turngym.envs.vector.channel import Channel, encode
from turngym.envs.vector.worker import IDLE, Board

# The worker gets the import path first, because even turngym may be importable only through it.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from turngym.envs.vector.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


class Handle:
    """One running worker process.

    Args:
        makers: The makers of its slots by index, as Gymnasium's ``CloudpickleWrapper``, pickled.
        memory_limit_mib: Memory it may allocate, in MiB; None for no limit.
    """

    def __init__(self, makers: bytes, memory_limit_mib: int | None) -> None:
        self._code: int | None = None
        near, far = socket.socketpair()
        with far, tempfile.TemporaryFile() as file:
            file.truncate(Board.SIZE)
            self.board = Board(file.fileno())
            self.board.write(IDLE)
            files = (far.fileno(), file.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path), *map(str, files)],
                stdin=subprocess.DEVNULL,
                pass_fds=files,
                start_new_session=True,
            )
        self.channel = Channel(near)
        with contextlib.suppress(OSError):  # a worker that is dead already is noticed when it is read
            self.channel.send(encode(("open", (makers, memory_limit_mib))))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def stop(self, patience_seconds: float) -> int:
        """End the process and everything it has started; wait so long for it to end by itself.

        Returns:
            The exit code, negative for a signal.
        """
        if self._code is not None:
            return self._code  # reaped already: its number may belong to another process by now
        self.channel.finish()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._code = self._process.wait()
        self.channel.close()
        self.board.close()
        return self._code
