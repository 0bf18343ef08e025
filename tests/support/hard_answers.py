"""Mathematical answers made by a grammar, which are hard to judge.

Towers of powers, factorials, complex numbers, matrices, huge decimals, roots, logarithms, lists, broken LaTeX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from turngym.seeding import stream

ChoiceT = TypeVar("ChoiceT")
GOLDS = ("17", r"\sqrt{2}x", r"\frac{1}{2}, \sqrt{3}", r"\begin{pmatrix} 1 & x \\ 2 & 3 \end{pmatrix}", "y = 2x + 1")
_LEAVES = ("0", "1", "2", "17", "x", "y", "i", "e", r"\pi", r"\infty", "0.5", "10", "999999", "1/3", "1,234,567")
_FUNCTIONS = ("sin", "cos", r"\tan", "cot", "sec", "csc", "arcsin", "acos", "arctan", "sinh", r"\cosh", "tanh", r"\ln")
_MORE = (r"\log", r"\log_2", "exp", r"\sqrt", r"\sqrt[3]", r"\sqrt[64]", r"\sin^2", "abs")
_JUNK = (
    r"\matrix 7",
    r"\matrix x",
    "{",
    "}",
    r"\frac",
    "!",
    "^",
    "_",
    "|",
    "&",
    r"\\",
    "\x00",
    "\ud800",
    "١٢",
    "²",
    "=",
)
_ENDS = (r"\le", ",", ";", r"\cup", r"\in", "=", r"\pm")


class AnswerGrammar:
    """Writes answers that are hard to judge.

    Args:
        generator: The source of randomness.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def _one(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        return choices[int(self._generator.integers(len(choices)))]

    def _whole(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))

    def sample(self) -> str:
        """Return an answer."""
        text = self._part(self._whole(1, 5))
        for _ in range(self._whole(0, 1)):
            text = self._broken(text)
        return text

    def _part(self, depth: int) -> str:
        if depth <= 0:
            return self._leaf()
        shapes: tuple[Callable[[int], str], ...] = (
            self._operation,
            self._tower,
            self._applied,
            self._fraction,
            self._factorial,
            self._repeated,
            self._matrix,
            self._sequence,
        )
        return self._one(shapes)(depth - 1)

    def _leaf(self) -> str:
        if self._whole(0, 4):
            return self._one(_LEAVES)
        digits = "9" * self._whole(1, 400)
        return self._one((digits, f"0.{digits}", f"{digits}.{digits}", f"0.{'0' * len(digits)}1"))

    def _operation(self, depth: int) -> str:
        return f"({self._part(depth)}{self._one(('+', '-', '*', '/', ''))}{self._part(depth)})"

    def _tower(self, depth: int) -> str:
        power = self._one(("10^(10^6)", "(-1/2)", "1/7", "999!", "i", "10^9", self._part(depth)))
        return f"({self._part(depth)})^({power})"

    def _applied(self, depth: int) -> str:
        return f"{self._one(_FUNCTIONS + _MORE)}({self._part(depth)})"

    def _fraction(self, depth: int) -> str:
        return rf"\frac{{{self._part(depth)}}}{{{self._part(depth)}}}"

    def _factorial(self, depth: int) -> str:
        return f"({self._part(depth)}){'!' * self._whole(1, 3)}"

    def _repeated(self, depth: int) -> str:
        part = f"{self._part(min(depth, 1))}{self._one(('+', '*', '^', ',', '/', '-'))}"
        return part * self._whole(2, max(2, 1500 // len(part))) + "2"

    def _matrix(self, depth: int) -> str:
        rows = r"\\".join("&".join(self._part(depth) for _ in range(2)) for _ in range(2))
        return rf"\begin{{pmatrix}}{rows}\end{{pmatrix}}"

    def _sequence(self, depth: int) -> str:
        inside = self._one(_ENDS).join(self._part(depth) for _ in range(self._whole(2, 4)))
        return self._one((f"({inside})", f"[{inside})", rf"\{{{inside}\}}", inside))

    def _broken(self, text: str) -> str:
        place = self._whole(0, len(text))
        end = self._whole(place, len(text))
        with_junk = text[:place] + self._one(_JUNK) + text[place:]
        return self._one((text[:place], with_junk, text[:place] + text[end:], text + text[place:]))


def answers(seed: int, count: int) -> Iterator[str]:
    """Return answers that are hard to judge.

    >>> len(set(answers(0, 20))) > 10
    True
    """
    grammar = AnswerGrammar(stream("answers", seed))
    for _ in range(count):
        yield grammar.sample()
