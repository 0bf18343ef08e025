"""A worker process as the vector sees it: started, used, and ended together with all its children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile

from turngym.envs.vector.backends.channel import Channel, encode
from turngym.envs.vector.backends.forking.fork_server import ForkServer
from turngym.envs.vector.backends.worker import STARTING, Board


class Handle:
    """One running worker process.

    Args:
        fork_server: Starts it.
        makers: The makers of its slots by index, as Gymnasium's ``CloudpickleWrapper``, pickled.
        memory_limit_mib: Memory it may allocate, in MiB; None for no limit.
    """

    def __init__(self, fork_server: ForkServer, makers: bytes, memory_limit_mib: int | None) -> None:
        self._code: int | None = None
        near, far = socket.socketpair()
        with far, tempfile.TemporaryFile() as file:
            file.truncate(Board.SIZE)
            self.board = Board(file.fileno())
            self.board.write(STARTING)
            self._process = fork_server.start((far.fileno(), file.fileno()))
        self.channel = Channel(near)
        surroundings = sys.path, dict(os.environ), os.getcwd()
        with contextlib.suppress(OSError):  # a worker that is dead already is noticed when it is read
            self.channel.send(encode(("open", (makers, memory_limit_mib, surroundings))))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def stop(self, patience_seconds: float) -> int:
        """End the process and everything it has started, after waiting for it to end by itself.

        Returns:
            The exit code, negative for a signal.
        """
        if self._code is not None:
            return self._code  # reaped already: its number may belong to another process by now
        self.channel.finish()
        self._process.wait(patience_seconds)
        self._process.kill()
        self._code = self._process.wait(None) or 0
        self._let_go()
        return self._code

    def kill(self) -> None:
        """Kill the process and everything it has started, without waiting."""
        if self._code is None:
            self._code = -signal.SIGKILL
            self._process.kill()
            self._let_go()

    def _let_go(self) -> None:
        self._process.release()
        self.channel.close()
        self.board.close()
