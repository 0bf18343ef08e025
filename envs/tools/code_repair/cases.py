"""Tests of published sets as data: ``assert f(1, 2) == 3`` becomes the input (1, 2) and the output 3.

No code of a file is executed here. A task whose tests are more than calls with plain values is skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from turngym.envs.data_files import read_lines
from turngym.errors import ConfigError


class CodeTask(NamedTuple):
    """A program to be written or repaired.

    Args:
        name: Name of its function.
        text: Intended behaviour.
        start: The initial program.
        solution: A right program.
        inputs: Arguments of the tests.
        outputs: Expected return values.
        visible: Number of tests that are shown, from the first on.
        share: Share of the hidden tests that ``start`` passes.
    """

    name: str
    text: str
    start: str
    solution: str
    inputs: tuple[tuple[Any, ...], ...]
    outputs: tuple[Any, ...]
    visible: int
    share: float = 0.0


def read_test(line: ast.stmt, name: str) -> tuple[tuple[Any, ...], Any] | None:
    """Return arguments and output of an assertion, None where it says something else.

    >>> read_test(ast.parse("assert f([1], 2) == (3,)").body[0], "f")
    (([1], 2), (3,))
    >>> read_test(ast.parse("assert not f('a')").body[0], "f")
    (('a',), False)
    """
    if not isinstance(line, ast.Assert):
        return None
    test = line.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _pair(test.operand, ast.Constant(False), name)
    if isinstance(test, ast.Call):
        return _pair(test, ast.Constant(True), name)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq | ast.Is):
        return None
    return _pair(test.left, test.comparators[0], name)


def _pair(call: ast.expr, output: ast.expr, name: str) -> tuple[tuple[Any, ...], Any] | None:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name or call.keywords:
        return None
    try:
        return tuple(ast.literal_eval(argument) for argument in call.args), ast.literal_eval(output)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _called(line: ast.stmt) -> str:
    """Return the name of the function that an assertion calls."""
    for node in ast.walk(line):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id
    return ""


def _mbpp(raw: Mapping[str, Any], visible: int) -> CodeTask | None:
    if str(raw.get("setup") or "").strip():
        return None
    lines = [ast.parse(test).body[0] for test in (*raw["tests"], *(raw.get("challenge_tests") or ()))]
    name = _called(lines[0])
    return _task(
        name, str(raw["prompt"]), "", str(raw["reference"]), [read_test(line, name) for line in lines], visible
    )


def _humaneval(raw: Mapping[str, Any], visible: int) -> CodeTask | None:
    check = next(node for node in ast.parse(raw["test"]).body if isinstance(node, ast.FunctionDef))
    lines = [line for line in check.body if not _says_nothing(line)]
    tests = [read_test(line, "candidate") for line in lines]
    prompt = str(raw["prompt"])
    solution = prompt + str(raw["canonical_solution"])
    return _task(str(raw["entry_point"]), "Complete the program.", prompt, solution, tests, visible)


def _says_nothing(line: ast.stmt) -> bool:
    if isinstance(line, ast.Assert) and isinstance(line.test, ast.Constant):
        return bool(line.test.value)
    return isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))


def _task(
    name: str, text: str, start: str, solution: str, tests: list[tuple[tuple[Any, ...], Any] | None], visible: int
) -> CodeTask | None:
    """Return a task, None where one of its tests is more than a call, or there are less than two."""
    known = [test for test in tests if test is not None]
    if len(known) != len(tests) or len(known) < 2 or not name:
        return None
    inputs, outputs = tuple(test[0] for test in known), tuple(test[1] for test in known)
    return CodeTask(name, text, start, solution, inputs, outputs, min(visible, len(known) - 1))


@lru_cache(maxsize=8)
def read_code_tasks(path: Path, visible: int) -> tuple[CodeTask, ...]:
    """Return the tasks of a file in the form of MBPP (prompt, reference, tests) or HumanEval.

    Raises:
        ConfigError: The file is damaged, or no task of it can be used.
    """
    found = []
    for number, raw in enumerate(read_lines(path), 1):
        try:
            task = _humaneval(raw, visible) if "canonical_solution" in raw else _mbpp(raw, visible)
        except (KeyError, TypeError, IndexError, ValueError, SyntaxError, StopIteration) as error:
            raise ConfigError(f"line {number} of {path} is not a task of MBPP or HumanEval ({error!r}).") from error
        if task is not None:
            found.append(task)
    if not found:
        raise ConfigError(f"{path} has no task whose tests are calls with plain values.")
    return tuple(found)
