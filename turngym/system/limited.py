"""Function calls in a separate process with limits: a call that hangs or exhausts memory there is an error here.

Untrusted files are replayed this way. Only functions of turngym are called, by names written in turngym;
arguments and results are JSON of bounded size, so nothing that a file says becomes an object of this process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError, TurngymError
from turngym.system.processes import descendants, resident_mib

try:
    import resource
except ImportError:  # Windows, where only the time on the clock is limited
    resource = None  # type: ignore[assignment]

_CHUNK, _LOOK_SECONDS = 1 << 16, 0.2
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from turngym.system.limited import serve; serve()"


class LimitReached(TurngymError, RuntimeError):
    """A call in a separate process was ended at one of its limits."""


@dataclass(frozen=True)
class CallLimits:
    """Limits of a call.

    Args:
        seconds: Time on the clock, and of the processor.
        memory_mib: Memory of the process and its children.
        answer_mib: Size of the result.
    """

    seconds: float = 900.0
    memory_mib: int = 4096
    answer_mib: int = 64


class LimitedProcess:
    """A process that is started at the first call, and again after one that reached a limit. Threads take turns.

    Args:
        limits: Limits of each call.

    >>> with LimitedProcess() as process:
    ...     process.call("turngym.system.limited:echo", {"value": [1, "a"]})
    [1, 'a']
    """

    def __init__(self, limits: CallLimits | None = None) -> None:
        self.limits = limits or CallLimits()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, function: str, arguments: Mapping[str, Any]) -> Any:
        """Return the result of a function of turngym.

        Args:
            function: ``"module:name"``.
            arguments: Its arguments, as JSON can hold them.

        Raises:
            LimitReached: It took too long or too much memory, its result is too large, or the process died.
            ConfigError: It raised an error of turngym.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = _started()
                self._at_exit = weakref.finalize(self, end_process, self._process, os.getpid())
            question = {"function": function, "arguments": dict(arguments), **vars(self.limits)}
            try:
                answer = self._asked(self._process, question)
            except BaseException:
                self._end()
                raise
        if "refused" in answer:
            raise ConfigError(answer["refused"])
        if "broken" in answer:
            raise LimitReached(answer["broken"])
        return answer["result"]

    def _asked(self, process: subprocess.Popen[bytes], question: Mapping[str, Any]) -> Any:
        assert process.stdin is not None and process.stdout is not None
        end = time.monotonic() + self.limits.seconds
        with contextlib.suppress(BrokenPipeError):  # its death is seen below
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        data, most = bytearray(), self.limits.answer_mib << 20
        while not data.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0:
                raise LimitReached(f"it was ended after {self.limits.seconds:g} seconds")
            if not select.select([process.stdout], [], [], min(left, _LOOK_SECONDS))[0]:
                if float_sum(map(resident_mib, descendants(process.pid))) > self.limits.memory_mib:
                    raise LimitReached(f"it took more than {self.limits.memory_mib} MiB of memory")
                continue
            chunk = os.read(process.stdout.fileno(), _CHUNK)
            data += chunk
            if len(data) > most:
                raise LimitReached(f"its result has more than {self.limits.answer_mib} MiB")
            if not chunk:
                raise LimitReached(self._death(process))
        return json.loads(data)

    def _death(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait(10)
        if code == -getattr(signal, "SIGXCPU", 0):
            return f"it was ended after {self.limits.seconds:g} seconds of processor time"
        return f"its process died (exit status {code})"

    def close(self) -> None:
        """End the process; a later call starts a new one."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process = None
            self._at_exit()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self.close()


def _started() -> subprocess.Popen[bytes]:
    """Start a process that looks for modules where this one does, but never in the working directory.

    Its hashes of texts have a fixed order, so that calls repeat.
    """
    path = [entry for entry in sys.path if entry and Path(entry).resolve() != Path.cwd()]
    path += [str(Path(__file__).parents[2])]
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _BOOT, json.dumps(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )


def end_process(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and its group, and close its pipes.

    Args:
        process: The process.
        owner: Number of the process that started it; does nothing in a fork of that.
    """
    if os.getpid() != owner:
        return
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def echo(value: Any) -> Any:
    """Return the argument."""
    return value


def serve() -> None:
    """Answer calls from the standard input until it ends: the program of the process."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an environment prints is not an answer
    while line := sys.stdin.buffer.readline():
        _answer(json.loads(line), answers)


def _answer(question: Mapping[str, Any], answers: IO[bytes]) -> None:
    _limit(question)
    try:
        module, _, name = question["function"].partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        answer = {"result": function(**question["arguments"])}
        data = json.dumps(answer).encode()
    except TurngymError as error:
        data = json.dumps({"refused": str(error)}).encode()
    except MemoryError:
        data = json.dumps({"broken": f"it took more than {question['memory_mib']} MiB of memory"}).encode()
    except Exception as error:  # told to the process that asked
        data = json.dumps({"broken": f"it broke with {type(error).__name__}: {error}"[:500]}).encode()
    answers.write(data + b"\n")
    answers.flush()


def limit_processor(seconds: float) -> None:
    """Let the rest of a call take so many seconds of the processor; for functions that are called in the process."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + 1)


def _limit(question: Mapping[str, Any]) -> None:
    if resource is None:
        return
    limit_processor(question["seconds"])
    _lower(resource.RLIMIT_DATA, question["memory_mib"] << 20)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
