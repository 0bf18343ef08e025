"""Judges of answers: each compares an answer with a task and returns a reward."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from turngym.arithmetic import as_float, is_finite
from turngym.envs.search.answers import normalise
from turngym.envs.search.wide_match import normalise_wide
from turngym.envs.tools.math_python.answers import PLAIN_NUMBER, require_comparison, same_answer
from turngym.envs.tools.questions.reading import FileTask
from turngym.errors import BrokenCode, ConfigError, UnknownName, nearest
from turngym.loading import Wanted, load_object, require_call, split_place

_NO_JUDGE = "none"
"""The judge that rewards nothing: rewards come from elsewhere."""
AUTO = "auto"
"""The judge that depends on the answers: ``math`` if all are numbers, else ``normalised``."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*+(?:\.\d++)?(?:[eE][-+]?\d{1,3})?+", re.ASCII)
_LONGEST_NUMBER = 60
_PRECISION = Decimal("1e-9")


class Grade(NamedTuple):
    """Value of an answer.

    Args:
        reward: The reward.
        success: Whether the task is solved.
    """

    reward: float
    success: bool


Judge: TypeAlias = Callable[[FileTask, str], Grade]


def _is_exact(given: str, answer: str) -> bool:
    return given.strip() == answer.strip()


def _is_normalised(given: str, answer: str) -> bool:
    bare = normalise(answer)
    return normalise(given) == bare if bare else _is_exact(given, answer)


def _is_widely_same(given: str, answer: str) -> bool:
    bare = normalise_wide(answer)
    return _is_normalised(given, answer) or (bool(bare) and normalise_wide(given) == bare)


def _is_contained(given: str, answer: str) -> bool:
    bare = normalise(answer)
    return f" {bare} " in f" {normalise(given)} " if bare else _is_exact(given, answer)


def last_number(text: str) -> str:
    """Return the last number in a text, without commas; empty if there is none.

    >>> last_number("It costs 1,250.50 dollars."), last_number("10-5"), last_number("none")
    ('1250.50', '5', '')
    """
    found = _NUMBER.findall(text)
    return found[-1].replace(",", "") if found else ""


def _is_same_number(given: str, answer: str) -> bool:
    first, second = last_number(given), last_number(answer)
    if not first or not second or max(len(first), len(second)) > _LONGEST_NUMBER:
        return bool(first) and first == second
    with localcontext(prec=2 * _LONGEST_NUMBER):
        mine, theirs = Decimal(first), Decimal(second)
        is_decimal = "." in second or "e" in second.lower()
        return abs(mine - theirs) <= _PRECISION * abs(theirs) if is_decimal else mine == theirs


_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "exact": _is_exact,
    "normalised": _is_normalised,
    "wide": _is_widely_same,
    "contains": _is_contained,
    "numeric": _is_same_number,
    "math": same_answer,
}
"""Name -> whether an answer equals an accepted one."""


def _comparing(is_same: Callable[[str, str], bool]) -> Judge:
    def judge(task: FileTask, given: str) -> Grade:
        is_right = bool(given.strip()) and any(is_same(given, answer) for answer in task.answers)
        return Grade(float(is_right), is_right)

    return judge


def _nothing(task: FileTask, given: str) -> Grade:
    return Grade(0.0, False)


_OWN = Wanted("a reward", "a function reward(task, answer) that returns a number, True or False", callable)


def _own(name: str) -> Judge:
    function: Callable[[FileTask, str], Any] = load_object(name, _OWN)
    require_call(function, f"the reward {name}", "a task and an answer")

    def judge(task: FileTask, given: str) -> Grade:
        found = function(task, given)
        found = found.item() if isinstance(found, np.generic) else found
        if not isinstance(found, bool | int | float) or not is_finite(found):
            shown = as_float(found) if isinstance(found, int) else found
            raise BrokenCode(
                f"the reward {name} must return True, False or a finite number, got {str(shown)[:60]!r} for the answer "
                f"{given[:60]!r} to the task {task.id!r}."
            )
        return Grade(float(found), found >= 1)

    return judge


def find_judge(name: str, tasks: Iterable[FileTask]) -> Judge:
    """Return a judge.

    Args:
        name: ``auto`` (``math`` if all answers are numbers, else ``normalised``); ``exact``; ``normalised`` (case,
            articles and punctuation do not count); ``wide`` (nor do Unicode forms, dashes, quotes, invisible signs and
            number words); ``contains`` (the reply contains the answer, both normalised); ``numeric`` (the last number);
            ``math`` (equal numbers or formulas); ``none``; or your own function, ``path/to/file.py:function`` or
            ``module:function``, called with the task and the answer.
        tasks: Subject of the judge.

    Raises:
        UnknownName: There is no such judge.
        ConfigError: A task has no answer to compare with.
    """
    if name == _NO_JUDGE:
        return _nothing
    if name == AUTO:
        tasks = tuple(tasks)
        name = "math" if all(map(_is_number, (answer for task in tasks for answer in task.answers))) else "normalised"
    if name in _COMPARISONS:
        _require_answers(name, tasks)
        return _comparing(_COMPARISONS[name])
    if split_place(name)[0]:
        return _own(name)
    known = nearest(name[:100], [AUTO, *_COMPARISONS, _NO_JUDGE])
    raise UnknownName(f"no reward named {name[:100]!r}. {known} Your own is path/to/file.py:function.")


def _is_number(answer: str) -> bool:
    return PLAIN_NUMBER.fullmatch(answer.strip().replace(",", "")) is not None


def _require_answers(name: str, tasks: Iterable[FileTask]) -> None:
    for task in tasks:
        if not task.answers:
            raise ConfigError(
                f"the task {task.id!r} has no answer, which the reward {name} compares with: add it, or pass your own "
                "reward, path/to/file.py:function."
            )
        if not all(map(str.strip, task.answers)):
            raise ConfigError(f"an answer of the task {task.id!r} is empty, which no reply equals: leave it out.")
        if name == "numeric" and not all(map(last_number, task.answers)):
            raise ConfigError(f"an answer of the task {task.id!r} has no number, which the reward numeric reads.")
    if name == "math":
        require_comparison(answer for task in tasks for answer in task.answers)
