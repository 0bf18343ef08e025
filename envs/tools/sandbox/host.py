"""The host's side of a session: it starts the sandbox, sends code, and kills it when it does not answer."""

from __future__ import annotations

import json
import math
import os
import secrets
import selectors
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from turngym.envs.tools.sandbox.launcher import Launch
from turngym.envs.tools.sandbox.protocol import Limits, Result, SandboxSession
from turngym.envs.tools.sandbox.system import started, with_way_out
from turngym.errors import TurngymError

START_SECONDS = 60.0
GRACE_SECONDS = 5.0
"""Waiting time for the driver after a call's time limit before the sandbox is killed."""
SHARED_BYTES = 256 * 1024
"""Size of /dev/shm inside: a page for each lock of ``multiprocessing``, whose pools have about ten."""
LONGEST_VALUE = 10_000
"""Characters of the value of a call's last line; those after them are cut off."""
READY = [("ready", True)]
"""First message of a driver, as :meth:`DriverSession._read_frame` reads it."""
_STATUSES = ("ok", "error", "timeout", "output", "died")
_FIELDS = ["lost_state", "status", "stderr", "stdout", "token", "value"]


def _refuse(digits: str) -> None:
    """Raise ValueError: a driver sends no numbers, so that none of any size has to be read."""
    raise ValueError(f"a number: {digits[:20]}")


_DECODER = json.JSONDecoder(object_pairs_hook=list, parse_int=_refuse, parse_float=_refuse)


class SandboxError(TurngymError, RuntimeError):
    """A sandbox that does not start; nothing has run."""


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
"""The environment inside. The order of sets is the same every time, so that equal code says equal things."""


@cache
def _driver_source() -> str:
    """Return the program that runs inside."""
    return (Path(__file__).parent / "driver.py").read_text("utf8")


def driver_arguments(limits: Limits) -> list[str]:
    """Return the arguments for the interpreter inside, which reads no files of its user."""
    return ["-s", "-S", "-c", _driver_source(), json.dumps(asdict(limits))]


class DriverSession(SandboxSession):
    """A session that talks to a driver in lines of JSON; one that has died is replaced.

    Subclasses implement how a driver is started, reached and ended.

    Args:
        limits: Limits of code.

    Raises:
        SandboxError: It does not start.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._start()

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """True if a driver has been started and not ended."""

    @abstractmethod
    def _start(self) -> None:
        """Start a driver and wait until it is ready, with nothing in the buffer."""

    @abstractmethod
    def _write(self, data: bytes, seconds: float) -> bool:
        """Send bytes; returns whether all were taken in time."""

    @abstractmethod
    def _read(self, seconds: float) -> bytes:
        """Return some bytes of the driver's output; empty at its end or when the time is up."""

    def run(self, code: str, wall_seconds: float | None = None) -> Result:
        """Run code."""
        if not isinstance(code, str):
            raise TypeError(f"code is text, got {type(code).__name__}.")
        seconds = self._limits.wall_seconds if wall_seconds is None else min(wall_seconds, self._limits.wall_seconds)
        if not seconds > 0 or math.isinf(seconds):
            raise ValueError(f"wall_seconds must be positive and finite, got {wall_seconds!r}.")
        if not self.is_alive:
            self._start()
        start, frame, token = time.monotonic(), None, secrets.token_hex(8)
        order = json.dumps({"code": code, "seconds": seconds, "token": token}).encode() + b"\n"
        if self._write(order, seconds + GRACE_SECONDS):
            frame = self._read_frame(seconds + GRACE_SECONDS)
        found = _result(frame, token, self._limits, time.monotonic() - start)
        if found is None:  # not a message of a driver
            self.close()
            return Result("died", stderr="the sandbox has died", seconds=time.monotonic() - start, lost_state=True)
        return found

    def _read_frame(self, seconds: float) -> Any:
        """Return the next line as JSON; None after the end, at the deadline, or where it is too long or no JSON."""
        deadline = time.monotonic() + seconds
        most = 6 * (int(self._limits.output_kib * 1024) + LONGEST_VALUE) + 1000  # JSON may take six letters for one
        while b"\n" not in self._buffer:
            data = self._read(deadline - time.monotonic()) if len(self._buffer) <= most else b""
            if not data:
                return None
            self._buffer += data
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        try:
            return _DECODER.decode(line.decode("ascii"))
        except (ValueError, RecursionError):
            return None


class ProcessSession(DriverSession):
    """A sandbox that is a child process, its driver on standard input and output.

    Args:
        launch: Prepares a start.
        limits: Limits of code.

    Raises:
        SandboxError: It does not start.
    """

    def __init__(self, launch: Callable[[], Launch], limits: Limits) -> None:
        self._launch = launch
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(limits)

    @property
    def is_alive(self) -> bool:
        """True if it has been started and not ended."""
        return self._process is not None

    def _start(self) -> None:
        started(self._start_once, SandboxError)

    def _start_once(self) -> None:
        command, self._cleanup, files = self._launch()
        self._buffer = bytearray()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=files,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            )
        except OSError as error:
            self._cleanup()
            raise SandboxError(f"{command[0]} does not start: {error}.") from error
        finally:
            for file in files:
                os.close(file)
        if self._read_frame(START_SECONDS) != READY:
            told = self._last_words()
            self.close()
            raise SandboxError(f"the sandbox does not start: {with_way_out(told).rstrip('.') or 'no word'}.")

    @property
    def pid(self) -> int:
        """Process id of the sandbox on the host; 0 if there is none."""
        return self._process.pid if self._process else 0

    def _last_words(self) -> str:
        assert self._process is not None and self._process.stderr is not None
        self._process.kill()
        return self._process.stderr.read(2000).decode("utf8", "replace").strip()

    def _write(self, data: bytes, seconds: float) -> bool:
        """Write in pieces that never block for longer than the time given."""
        assert self._process is not None and self._process.stdin is not None
        left, deadline = memoryview(data), time.monotonic() + seconds
        os.set_blocking(self._process.stdin.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdin, selectors.EVENT_WRITE)
            while left:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return False
                try:
                    left = left[os.write(self._process.stdin.fileno(), left[:65536]) :]
                except OSError:
                    return False
        return True

    def _read(self, seconds: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, seconds)):
                return b""
        return os.read(self._process.stdout.fileno(), 65536)

    def close(self) -> None:
        """End everything inside."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        self._cleanup()


def _result(frame: Any, token: str, limits: Limits, seconds: float) -> Result | None:
    """Return what a frame says, None if it is none of the driver's, or not the answer to this order."""
    if not isinstance(frame, list) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in frame):
        return None
    if sorted(name for name, _ in frame) != _FIELDS:
        return None
    told = dict(frame)
    texts = {name: told[name] for name in ("stdout", "stderr", "value")}
    if not all(isinstance(text, str) for text in (*texts.values(), told["token"])) or told["token"] != token:
        return None
    if told["status"] not in _STATUSES or not isinstance(told["lost_state"], bool):
        return None
    if len(texts["stdout"]) + len(texts["stderr"]) > limits.output_kib * 1024 or len(texts["value"]) > LONGEST_VALUE:
        return None
    valid = {name: text.encode("utf8", "replace").decode("utf8") for name, text in texts.items()}
    return Result(told["status"], seconds=seconds, lost_state=told["lost_state"], **valid)
