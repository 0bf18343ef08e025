"""Python run in forks of a process that has imported turngym's commands already: the imports cost seconds each time.

A fork has its own working directory, variables, streams and session, and ends as an interpreter ends. What a fresh
interpreter alone shows (its flags, what it has not imported) needs a real process.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

COMMANDS = ("list", "play", "check", "new_env", "eval", "verify", "leaderboard", "tournament", "report", "view")
OTHERS = ("tyro._backends._tyro_backend", "unittest.mock", "asyncio", "numpy.ma", "jinja2", "pettingzoo", "rich.table")
LIGHT = (*(f"turngym.benchmarks.cli.{name}" for name in COMMANDS), "turngym.benchmarks.evaluation.run", *OTHERS)
"""Imported at once; none of them registers a suite or loads plug-ins."""
HEAVY = (*LIGHT, "turngym.benchmarks.cli.train", "turngym.trainers.loop.job", "turngym.agents.models.agent")
"""Imported for commands that need a model."""

spent = [0.0]
"""Seconds of processor time of all forks, and of the processes they came from."""


class Server:
    """A process that forks for every call.

    Args:
        before: A command put before it.
        modules: What it imports at first.
    """

    def __init__(self, before: tuple[str, ...] = (), modules: tuple[str, ...] = LIGHT) -> None:
        pipe = subprocess.PIPE
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        words = [*before, sys.executable, __file__, *modules]
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=env, start_new_session=True)
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        if not self._process.stdin.closed:  # type: ignore[union-attr]
            self._process.communicate(timeout=60)

    def run(self, calls: Sequence[Mapping[str, Any]], timeout: float) -> list[int]:
        """Fork for each call, and return the exit statuses, or the signals that ended them as negative numbers."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        requests.write(json.dumps(calls) + "\n")
        requests.flush()
        limit = _Limit(json.loads(answers.readline()), timeout)
        with limit:
            statuses, seconds = json.loads(answers.readline())
        spent[0] += seconds
        if limit.is_over:
            raise subprocess.TimeoutExpired(list(calls[0]["words"]), timeout)
        return list(statuses)


class _Limit:
    """End the sessions of processes that take too long."""

    def __init__(self, pids: Sequence[int], timeout: float) -> None:
        self.is_over = False
        self._pids, self._timer = pids, threading.Timer(timeout, self._end)

    def _end(self) -> None:
        self.is_over = True
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


server = functools.cache(Server)


def run(
    *words: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    typed: str | bytes = "",
    timeout: float = 900,
    before: tuple[str, ...] = (),
    modules: tuple[str, ...] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Do what ``python WORDS`` does.

    Args:
        words: ``-m`` and a module, ``-c`` and code, or a file, and arguments.
        cwd: The working directory.
        env: All variables.
        typed: The standard input.
        timeout: Seconds after which it is ended.
        before: A command put before the process that is forked.
        modules: What that process has imported; :data:`LIGHT` or :data:`HEAVY`, as the words need it, unless given.

    Raises:
        subprocess.TimeoutExpired: It took longer.
    """
    return run_together([words], [env or os.environ], cwd, typed, timeout, before, modules)[0]


def run_together(
    calls: Sequence[Sequence[str]],
    envs: Sequence[Mapping[str, str]],
    cwd: Path | None = None,
    typed: str | bytes = "",
    timeout: float = 900,
    before: tuple[str, ...] = (),
    modules: tuple[str, ...] | None = None,
) -> list[subprocess.CompletedProcess[str]]:
    """Do what several ``python WORDS`` do at the same time, each with its variables; the rest is as for :func:`run`."""
    if modules is None:
        needs_model = any("train" in words or any("hf:" in word for word in words) for words in calls)
        modules = HEAVY if needs_model else LIGHT
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        requests: list[dict[str, Any]] = []
        for number, (words, env) in enumerate(zip(calls, envs, strict=True)):
            files = [Path(folder, f"{name}{number}") for name in ("in", "out", "err")]
            files[0].write_bytes(typed.encode() if isinstance(typed, str) else typed)
            for file in files[1:]:
                file.touch()
            if before:  # its user may not be the owner
                Path(folder).chmod(0o755)
                for file in files:
                    file.chmod(0o666)
            call = {"words": words, "cwd": str(cwd or Path.cwd()), "env": dict(env), "files": list(map(str, files))}
            requests.append(call)
        statuses = server(before, modules).run(requests, timeout)
        return [
            subprocess.CompletedProcess(
                [*before, sys.executable, *call["words"]],
                status,
                *(Path(file).read_text("utf8") for file in call["files"][1:]),
            )
            for call, status in zip(requests, statuses, strict=True)
        ]


def serve(modules: Sequence[str], requests: IO[str], answers: IO[str]) -> dict[str, Any] | None:
    """Fork for every request; return the request in a fork, and None at the end in this process."""
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    counted = 0.0
    for line in iter(requests.readline, ""):
        pids = []
        for call in json.loads(line):
            if not (pid := os.fork()):
                requests.close()
                answers.close()
                return dict(call)
            pids.append(pid)
        print(json.dumps(pids), file=answers, flush=True)
        ended = [os.wait4(pid, 0)[1:] for pid in pids]
        own, counted = time.process_time() - counted, time.process_time()
        seconds = own + sum(used.ru_utime + used.ru_stime for _, used in ended)
        print(
            json.dumps([[os.waitstatus_to_exitcode(status) for status, _ in ended], seconds]), file=answers, flush=True
        )
    return None


def become(call: Mapping[str, Any], path: list[str]) -> None:
    """Run the words of a request as the interpreter would have been started with them."""
    os.setsid()
    os.chdir(call["cwd"])
    for stream, file in enumerate(call["files"]):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND if stream else os.O_RDONLY)
        os.dup2(opened, stream)
        os.close(opened)
    os.environ.clear()
    os.environ.update(call["env"])
    added = [each for each in call["env"].get("PYTHONPATH", "").split(os.pathsep) if each]
    first, *arguments = call["words"]
    folder = {"-m": call["cwd"], "-c": ""}.get(first, str(Path(first).parent))
    sys.path[:] = [folder, *added, *path]
    sys.dont_write_bytecode = bool(call["env"].get("PYTHONDONTWRITEBYTECODE"))
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    importlib.invalidate_caches()
    if first == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *arguments[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [first, *arguments]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _requests, _answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _path = sys.path[1:]
    if (_call := serve(sys.argv[1:], _requests, _answers)) is not None:
        become(_call, _path)
