"""Small programs of our own, each with what its inputs look like: faults are planted in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.tools.code_repair import programs_lists, programs_numbers
from turngym.seeding import stream

_NUM_INPUTS = 24
"""Inputs of each program, always the same; tests are drawn from them."""


class Program(NamedTuple):
    """A right program.

    Args:
        name: Name of its function.
        summary: Description, the first line of its docstring.
        source: Its text.
        inputs: Arguments of the calls that tests consist of.
        outputs: Results of the calls.
    """

    name: str
    summary: str
    source: str
    inputs: tuple[list[Any], ...]
    outputs: tuple[Any, ...]


def _whole(generator: np.random.Generator) -> int:
    return int(generator.integers(0, 13) if generator.random() < 0.6 else generator.integers(0, 200))


def _positive(generator: np.random.Generator) -> int:
    return 1 + _whole(generator)


def _small(generator: np.random.Generator) -> int:
    return int(generator.integers(1, 8))


def _numbers(generator: np.random.Generator) -> list[int]:
    return [int(number) for number in generator.integers(-9, 15, int(generator.integers(0, 9)))]


def _some_numbers(generator: np.random.Generator) -> list[int]:
    return [*_numbers(generator), int(generator.integers(-9, 15))]


def _sorted_numbers(generator: np.random.Generator) -> list[int]:
    return sorted(_numbers(generator))


def _word(generator: np.random.Generator) -> str:
    return "".join("abcdeAB "[int(place)] for place in generator.integers(0, 8, int(generator.integers(0, 10))))


def _brackets(generator: np.random.Generator) -> str:
    text = ""
    for _ in range(int(generator.integers(0, 5))):
        text = text + "()" if generator.random() < 0.5 else f"({text})"
    if generator.random() < 0.5 and text:
        place = int(generator.integers(len(text)))
        text = text[:place] + text[place + 1 :] if generator.random() < 0.5 else text[:place] + ")" + text[place:]
    return text


def _grid(generator: np.random.Generator) -> list[list[int]]:
    rows, columns = (int(number) for number in generator.integers(1, 5, 2))
    return [[int(number) for number in row] for row in generator.integers(-5, 10, (rows, columns))]


_INPUTS: Mapping[str, Callable[[np.random.Generator], Any]] = {
    "whole": _whole,
    "positive": _positive,
    "small": _small,
    "numbers": _numbers,
    "some_numbers": _some_numbers,
    "sorted_numbers": _sorted_numbers,
    "word": _word,
    "brackets": _brackets,
    "grid": _grid,
}


@cache
def programs() -> Mapping[str, Program]:
    """Return the programs by their names.

    >>> programs()["gcd"].summary
    'Return the greatest common divisor of two positive numbers.'
    """
    found = {}
    for module in (programs_numbers, programs_lists):
        for function, kinds in module.PROGRAMS:
            found[function.__name__] = _program(function, kinds)
    return found


def _program(function: Callable[..., Any], kinds: tuple[str, ...]) -> Program:
    name, generator = function.__name__, stream("program", function.__name__)
    inputs: list[list[Any]] = []
    for _ in range(_NUM_INPUTS * 20):
        drawn = [_INPUTS[kind](generator) for kind in kinds]
        if drawn not in inputs and len(inputs) < _NUM_INPUTS:
            inputs.append(drawn)
    outputs = tuple(function(*[_copied(value) for value in values]) for values in inputs)
    summary = (inspect.getdoc(function) or "").partition("\n")[0]
    return Program(name, summary, inspect.getsource(function), tuple(inputs), outputs)


def _copied(value: Any) -> Any:
    return [_copied(each) for each in value] if isinstance(value, list) else value
