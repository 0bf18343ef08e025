"""Running a program on test inputs in a sandbox. Inputs go in, outputs come out, comparing is done outside.

What a program is expected to return never enters the sandbox, so it cannot be found there. A program can write any
output: this gives it no more than returning it would.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from turngym.envs.tools.code_repair.returned import matches, read
from turngym.envs.tools.sandbox import Result, Sandbox, SandboxSession

_MOST_LOSSES = 2
"""Tests that may end the interpreter before the rest is given up."""
CALL = """
import sys
import types


def install(names):
    class Program(types.ModuleType):  # the names as a module: dataclasses, pickle and typing look there
        __dict__ = property(lambda self: names)

        def __getattr__(self, name):
            if name not in names:
                raise AttributeError(name)
            return names[name]

    names['__name__'] = 'program'  # not '__main__': the block of such a guard is not run
    sys.modules['program'] = Program('program')


class Shown(str):
    def __repr__(self):
        return str(self)


def call(function, arguments):
    return Shown(json.dumps(encode(function(*decode(json.loads(arguments))))))
"""
"""Source, after that of ``values.py``, of what calls the program."""
_LOAD = """
def _turngym_call(name, arguments):
    if name not in globals():
        raise NameError('there is no function ' + name)
    return _turngym_call.space['call'](globals()[name], arguments)
_turngym_call.space = {{'__name__': 'turngym_values'}}
exec({source!r}, _turngym_call.space)
_turngym_call.space['install'](globals())
"""


class Ran(NamedTuple):
    """The result of one test input.

    Args:
        is_known: Whether the program returned a value.
        value: The value, encoded (see :mod:`turngym.envs.tools.code_repair.returned`).
        problem: Why it returned none, in a line.
        output: Output.
    """

    is_known: bool
    value: Any = None
    problem: str = ""
    output: str = ""


@cache
def _harness() -> str:
    """Return what is run first: the names of the program under test and ours do not meet."""
    return _LOAD.format(source=(Path(__file__).parent / "values.py").read_text("utf8") + CALL)


_TOO_LATE = "not run: the time of all tests is over"
_NO_VALUE = {
    "timeout": "out of time",
    "output": "too much output",
    "died": "its process was ended",
    "ok": "it ended the interpreter",
}


def run_tests(
    sandbox: Sandbox,
    source: str,
    name: str,
    inputs: Sequence[Sequence[Any]],
    seconds: float,
    deadline: float = math.inf,
) -> tuple[list[Ran], str]:
    """Run a program on each input.

    Args:
        sandbox: Sandbox, with its own session.
        source: The program.
        name: Name of its function.
        inputs: Encoded arguments of each call (see :mod:`turngym.envs.tools.code_repair.values`).
        seconds: Time of each call.
        deadline: When the time of all calls is over, as of ``time.monotonic``; later ones are not run.

    Returns:
        What came of each input, and what went wrong before the first; empty for nothing.

    Raises:
        SandboxError: The sandbox does not start.
    """
    with sandbox.session() as session:
        return run_in(session, source, name, inputs, seconds, deadline=deadline)


def run_in(
    session: SandboxSession,
    source: str,
    name: str,
    inputs: Sequence[Sequence[Any]],
    seconds: float,
    most_losses: int = _MOST_LOSSES,
    deadline: float = math.inf,
) -> tuple[list[Ran], str]:
    """Run a program on each input as :func:`run_tests` does, in a session that is there already."""
    problem = _load(session, source, seconds, deadline)
    if problem:
        return [Ran(False, problem=problem)] * len(inputs), problem
    found: list[Ran] = []
    losses, is_loaded = 0, True
    for values in inputs:
        is_loaded = is_loaded or (losses <= most_losses and not _load(session, source, seconds, deadline))
        left = min(seconds, deadline - time.monotonic())
        if left <= 0:
            found.append(Ran(False, problem=_TOO_LATE))
            continue
        if not is_loaded:
            losses = most_losses + 1
            found.append(Ran(False, problem="not run: earlier tests ended the interpreter"))
            continue
        told = session.run(f"_turngym_call({name!r}, {json.dumps(list(values))!r})", left)
        losses, is_loaded = losses + told.lost_state, not told.lost_state
        found.append(_read(told))
    return found, ""


def _load(session: SandboxSession, source: str, seconds: float, deadline: float) -> str:
    """Run the program itself; returns what went wrong."""
    left = min(seconds, deadline - time.monotonic())
    if left <= 0:
        return _TOO_LATE
    session.run(_harness())
    told = session.run(source, left)
    if told.status == "ok":
        return ""
    return last_line(told.stderr) if told.status == "error" else _NO_VALUE[told.status]


def last_line(text: str) -> str:
    """Return the last line of a traceback, at most 200 characters of it."""
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it failed without a word"


def _read(told: Result) -> Ran:
    if told.status == "error":
        return Ran(False, problem=last_line(told.stderr), output=told.stdout)
    if told.status != "ok" or not told.value:
        return Ran(False, problem=_NO_VALUE[told.status], output=told.stdout)
    try:
        return Ran(True, read(told.value), output=told.stdout)
    except ValueError:
        return Ran(False, problem="it returned what is no plain value, or a very long one", output=told.stdout)


def passed(ran: Sequence[Ran], outputs: Sequence[Any]) -> list[bool]:
    """Return which tests a program passes."""
    return [one.is_known and _is_same(one.value, output) for one, output in zip(ran, outputs, strict=True)]


def _is_same(value: Any, output: Any) -> bool:
    try:
        return matches(value, output)
    except (RecursionError, OverflowError):
        return False
