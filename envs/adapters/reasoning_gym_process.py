"""Functions that the process of :mod:`turngym.envs.adapters.reasoning_gym` runs: the package is imported here alone."""

from __future__ import annotations

import ast
import importlib
import json
import random
import re
import warnings
from collections.abc import Mapping
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from turngym.arithmetic import is_finite
from turngym.envs.adapters.borrowed import import_package, made_for
from turngym.system.limited import limit_processor

_EVALUATING = (
    "algorithmic.binary_matrix",
    "algorithmic.spiral_matrix",
    "algorithmic.string_insertion",
    "games.n_queens",
)
"""Modules that call ``eval`` on an answer."""
_PARSING = {
    "games.countdown": "parse_expr",
    "games.puzzle24": "parse_expr",
    "algebra.simple_integration": "sympy",
    "algebra.intermediate_integration": "sympy",
    "algebra.polynomial_multiplication": "sp",
}
"""Modules that let SymPy evaluate an answer -> the global name by which they reach its parser."""
_ANGLES = ("sin", "cos", "tan", "cot", "sec", "csc")
_FUNCTIONS = frozenset(
    [
        *("sqrt", "exp", "log", "ln", "abs", "Abs", "erf", "pi"),
        *(f"{before}{name}{after}" for name in _ANGLES for before in ("", "a") for after in ("", "h")),
    ]
)
_EXPRESSION = re.compile(r"[0-9A-Za-z+\-*/^(). \t\n]{0,5000}")
_WORD, _ATTRIBUTE = re.compile(r"[A-Za-z]+"), re.compile(r"\.[ \t\n]*[A-Za-z]")
_SCORE_SECONDS = 5.0
_LONGEST_LITERAL = 20_000


def literal(text: str) -> Any:
    """Return the value of a Python literal.

    Raises:
        ValueError: It is something else, or too long.

    >>> literal("[['Q', '_']]")
    [['Q', '_']]
    """
    if len(text) > _LONGEST_LITERAL:
        raise ValueError("too long")
    return ast.literal_eval(text)


def require_arithmetic(text: str) -> None:
    """Raise ValueError unless a text is arithmetic of numbers, single letters and the usual functions.

    SymPy's parser evaluates what it reads as Python, so that an attribute or a name could reach anything.

    >>> require_arithmetic("x**2/3 + sin(x) + C")
    >>> require_arithmetic("().__class__")
    Traceback (most recent call last):
    ValueError: no arithmetic
    """
    is_plain = _EXPRESSION.fullmatch(text) and not _ATTRIBUTE.search(text)
    if not is_plain or any(len(word) > 1 and word not in _FUNCTIONS for word in _WORD.findall(text)):
        raise ValueError("no arithmetic")


class _Guarded:
    """SymPy, with a parser that refuses whatever is not arithmetic."""

    def __init__(self, sympy: ModuleType) -> None:
        self._sympy = sympy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sympy, name)

    def parse_expr(self, text: str, **options: Any) -> Any:
        """Parse arithmetic."""
        require_arithmetic(text)
        return self._sympy.parse_expr(text, **options)


@cache
def _package() -> ModuleType:
    """Import the package, and replace what evaluates answers in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of a package that it needs
        package = import_package("reasoning_gym", "turngym/ReasoningGym-v0", "reasoning-gym", "reasoning")
    for name in _EVALUATING:
        vars(importlib.import_module(f"reasoning_gym.{name}"))["eval"] = literal
    guarded = _Guarded(importlib.import_module("sympy"))
    for name, reached in _PARSING.items():
        found = vars(importlib.import_module(f"reasoning_gym.{name}"))
        found[reached]  # a KeyError if the package has changed
        found[reached] = guarded.parse_expr if reached == "parse_expr" else guarded
    return package


def names() -> list[str]:
    """Return the names of all data sets."""
    _package()
    return sorted(importlib.import_module("reasoning_gym.factory").DATASETS)


@lru_cache(maxsize=64)
def _entry(data: str, options: str, seed: int) -> tuple[Any, Mapping[str, Any]]:
    """Return the data set of a seed and its first entry."""
    random.seed(seed)
    np.random.seed(seed)
    with made_for("reasoning-gym", f"a question of {data}"):
        found = _package().create_dataset(data, **{**json.loads(options), "size": 1, "seed": seed})
        return found, found[0]


def task(data: str, options: Mapping[str, Any], seed: int) -> dict[str, str | None]:
    """Return question and answer of a seed; the answer is None where the package has none."""
    _, entry = _entry(data, json.dumps(options, sort_keys=True), seed)
    answer = entry["answer"]
    return {"question": str(entry["question"]), "answer": None if answer is None else str(answer)}


def score(data: str, options: Mapping[str, Any], seed: int, answer: str) -> float:
    """Return the package's score of an answer, 0 where it raises; the process dies where it takes too long."""
    found, entry = _entry(data, json.dumps(options, sort_keys=True), seed)
    limit_processor(_SCORE_SECONDS)
    try:
        value = float(found.score_answer(answer, entry))
    except Exception:  # answers are any text
        return 0.0
    return value if is_finite(value) and 0 <= value <= 1 else 0.0
