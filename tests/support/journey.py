"""Journeys of a user: commands as they are typed, in separate processes, from a folder with nothing of ours."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warm

import turngym
from turngym.__main__ import main

ROOT = Path(turngym.__file__).parents[1]
USAGE = 2
"""The exit status for something that the user can put right."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command did.

    Args:
        words: The words after ``turngym``.
        status: Its exit status.
        out: Its standard output.
        err: Its error stream.
    """

    words: tuple[str, ...]
    status: int
    out: str
    err: str

    @property
    def result(self) -> Any:
        """What ``--json`` printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Its standard output without empty lines."""
        return [line for line in self.out.splitlines() if line.strip()]

    def __str__(self) -> str:
        command = shlex.join(["turngym", *self.words])
        return f"$ {command}\nexit status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a command: this source tree is what runs, with one thread and no terminal."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", **(extra or {})}


def start(
    folder: Path, *words: str, extra: Mapping[str, str] | None = None, before: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start ``turngym WORDS`` in a folder, as the leader of a session of its own, through a command put before it."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "turngym", *words],
        cwd=folder,
        env=environ(extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], typed: str = "", timeout: float = 900) -> Answer:
    """Wait for a command that was started, give it what is typed, and return what it did.

    Neither a traceback nor a bug may be shown, whatever happened. One that does not end is ended with its children.
    """
    try:
        out, err = process.communicate(typed, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"did not end in {timeout} s\n{out}\n{err}") from None
    assert isinstance(process.args, list)
    given = tuple(map(str, process.args))
    return _checked(Answer(given[given.index("turngym") + 1 :], process.returncode, out, err))


def _checked(answer: Answer) -> Answer:
    for text in ("Traceback (most recent call last)", "This is a bug in turngym", "Exception ignored in"):
        assert text not in answer.out + answer.err, str(answer)
    return answer


def walk(
    folder: Path,
    *words: str,
    typed: str = "",
    extra: Mapping[str, str] | None = None,
    timeout: float = 900,
    before: tuple[str, ...] = (),
) -> Answer:
    """Run ``turngym WORDS`` in a folder and return what it did, whatever its exit status."""
    env = environ(extra)
    done = warm.run("-m", "turngym", *words, cwd=folder, env=env, typed=typed, timeout=timeout, before=before)
    return _checked(Answer(words, done.returncode, done.stdout, done.stderr))


def here(folder: Path, *words: str) -> Answer:
    """Run ``turngym WORDS`` in this process: starting another is most of what an error costs."""
    with contextlib.chdir(folder), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main(words)
    return _checked(Answer(words, status, out.getvalue(), err.getvalue()))


def works(folder: Path, *words: str, typed: str = "", extra: Mapping[str, str] | None = None) -> Answer:
    """Run ``turngym WORDS`` in a folder; it must succeed."""
    answer = walk(folder, *words, typed=typed, extra=extra)
    assert answer.status == 0, str(answer)
    return answer


def works_as_printed(folder: Path, line: str, *more: str) -> Answer:
    """Run a line that a command printed, such as ``turngym eval ...``, with more words at its end; it must succeed."""
    name, *words = shlex.split(line, comments=True)
    assert name == "turngym", line
    return works(folder, *words, *more)


def fails(
    folder: Path,
    *words: str,
    says: tuple[str, ...],
    status: int = USAGE,
    extra: Mapping[str, str] | None = None,
    before: tuple[str, ...] = (),
    apart: bool = True,
) -> Answer:
    """Run ``turngym WORDS`` in a folder; it must end with one to three lines that say all of this.

    Args:
        folder: The working directory.
        words: The command line.
        says: What the lines must hold.
        status: The exit status.
        extra: Variables for the command.
        before: A command put before it.
        apart: Whether it is run in a process of its own; ``extra`` and ``before`` need one.
    """
    answer = walk(folder, *words, extra=extra, before=before) if apart else here(folder, *words)
    shown = answer.err.strip().splitlines()
    assert answer.status == status and 1 <= len(shown) <= 3 and "error: " in answer.err, str(answer)
    assert all(text in answer.err for text in says), str(answer)
    return answer
