"""Starts worker processes quickly, by forking a process that has imported everything: milliseconds each.

It runs in its own interpreter, without threads or user code, so a fork of it is as clean as a new interpreter. It
cannot hang, because it runs only the loop in :mod:`turngym.envs.vector.backends.forking.forks`. Its imported modules
are shared by all workers, so that each needs little memory of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque

from turngym.envs.vector.backends.forking.forks import FAILED, NOTE, STARTED
from turngym.errors import TurngymError

_UNKNOWN = -1
# The import path comes first, because even turngym may be importable only through it.
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
_BOOT_FORK_SERVER = (
    _BOOT + "from turngym.envs.vector.backends.forking.forks import serve; "
    "from turngym.envs.vector.backends.worker import main; "
    "main(*serve(int(sys.argv[2])))"
)
_BOOT_WORKER = _BOOT + "from turngym.envs.vector.backends.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"


class Child(ABC):
    """A process that was started, and leads its own group."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The process id; 0 if there has never been one."""

    @abstractmethod
    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""

    @abstractmethod
    def wait(self, timeout_seconds: float | None) -> int | None:
        """Wait for the end and return the exit code, negative for a signal; None if the time is over before."""

    @abstractmethod
    def release(self) -> None:
        """Reap the process as soon as it has ended; no other method may be called after that."""

    def kill(self) -> None:
        """Kill the process and everything that it has started."""
        if self.pid > 0:
            for kill in (os.killpg, os.kill):  # one that was forked just now may not lead a group yet
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)


class _Interpreter(Child):
    """A worker that was started as its own interpreter."""

    def __init__(self, files: tuple[int, int]) -> None:
        self._process = _interpreter(_BOOT_WORKER, files)

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_seconds: float | None) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_seconds)
        return None

    def release(self) -> None:
        self._process.wait()


class _Forked(Child):
    """A worker forked by the fork server; its process id becomes known a little later.

    Args:
        fork_server: The fork server.
    """

    def __init__(self, fork_server: ForkServer) -> None:
        self.fork_server = fork_server
        self.known_pid = 0
        self.code: int | None = None

    @property
    def pid(self) -> int:
        while not self.known_pid and self.code is None:
            self.fork_server.listen(None)
        return self.known_pid

    def poll(self) -> int | None:
        return self.wait(0.0)

    def wait(self, timeout_seconds: float | None) -> int | None:
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while self.code is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self.fork_server.listen(left, self) and self.code is None and left == 0.0:
                return None
        return self.code

    def release(self) -> None:
        self.fork_server.release(self)


class ForkServer:
    """Starts worker processes; where forking is not supported, each is a new interpreter."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._expected: deque[_Forked] = deque()
        self._living: dict[int, _Forked] = {}

    def start(self, files: tuple[int, int]) -> Child:
        """Start a worker; returns at once.

        Args:
            files: Descriptors of its channel's socket and of its board's file.
        """
        if sys.platform != "linux":
            return _Interpreter(files)
        for _ in range(2):  # the fork server itself may have been killed
            if self._process is None:
                self._open()
            with contextlib.suppress(OSError):
                self._control.settimeout(None)
                socket.send_fds(self._control, [b"?"], files)
                self._expected.append(_Forked(self))
                return self._expected[-1]
            self.close()
        raise TurngymError("the process that starts the workers has ended twice in a row.")

    def _open(self) -> None:
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = _interpreter(_BOOT_FORK_SERVER, (far.fileno(),))

    def listen(self, timeout_seconds: float | None, child: _Forked | None = None) -> bool:
        """Read one message from the fork server; returns whether one arrived in time.

        Args:
            timeout_seconds: Timeout; None for no limit.
            child: The worker being waited for, in case the fork server was killed and its exit code is unknown.

        Raises:
            TurngymError: The system cannot start another process.
        """
        if self._process is None:
            return child is not None and _watch(child, timeout_seconds)
        self._control.settimeout(timeout_seconds)
        try:
            data = self._control.recv(NOTE.size)
        except (BlockingIOError, TimeoutError):
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return True
        what, pid = NOTE.unpack(data)
        if what == STARTED:
            child = self._living[pid] = self._expected.popleft()
            child.known_pid = pid
        elif what == FAILED:
            self._expected.popleft().code = _UNKNOWN
            raise TurngymError(f"a worker process cannot be started: {os.strerror(pid)}.")
        elif pid in self._living:
            self._living.pop(pid).code = what
        return True

    def release(self, child: _Forked) -> None:
        """Let the fork server reap a worker as soon as it has ended."""
        if self._process is not None and child.pid:
            self._living.pop(child.pid, None)
            with contextlib.suppress(OSError):
                self._control.settimeout(None)
                self._control.send(NOTE.pack(0, child.pid))

    def close(self) -> None:
        """End the fork server; its workers keep running."""
        if self._process is None:
            return
        self._control.close()
        self._process.kill()
        self._process.wait()
        self._process = None
        for child in self._expected:
            child.code = _UNKNOWN
        self._expected.clear()
        self._living.clear()


def _watch(child: _Forked, timeout_seconds: float | None) -> bool:
    """Wait briefly for a worker to end; returns whether it has ended."""
    try:
        os.kill(child.known_pid, 0)
    except ProcessLookupError:
        child.code = _UNKNOWN
        return True
    time.sleep(0.01 if timeout_seconds is None else min(0.01, timeout_seconds))
    return False


def _interpreter(code: str, files: tuple[int, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(sys.path), *map(str, files)],
        stdin=subprocess.DEVNULL,
        pass_fds=files,
        start_new_session=True,
    )
