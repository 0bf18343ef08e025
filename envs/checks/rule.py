"""A rule of the check: a stable name, the promise, why it matters, how to fix it, and the test itself."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from turngym.loading import is_library

if TYPE_CHECKING:
    from turngym.envs.checks.case import Case

_EXCERPT = 45
_LONGEST_MESSAGE = 300
_INSIDE = ("turngym.envs.checks", "turngym.envs.core", "gymnasium.", "numpy.", "json.")


class Skipped(Exception):
    """The rule does not apply to this environment; the message says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with the shortest evidence.

    Args:
        seen: Evidence in one sentence.
        seed: Seed of the episode that shows it, None where no episode is needed.
        turn: Turn of that episode, 0 for the reset.
        ours: Part of the text that was expected, around the first difference; empty where nothing is compared.
        theirs: The same part of the actual text.
    """

    seen: str
    seed: int | None = None
    turn: int | None = None
    ours: str = ""
    theirs: str = ""

    def place(self) -> str:
        """Return what was seen and where, without the texts."""
        place = [f"{name} {value}" for name, value in (("seed", self.seed), ("turn", self.turn)) if value is not None]
        return f"{self.seen} ({', '.join(place)})" if place else self.seen

    def __str__(self) -> str:
        texts = f": expected {self.ours!r}, got {self.theirs!r}" if self.ours or self.theirs else ""
        return self.place() + texts


Test: TypeAlias = Callable[["Case"], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One promise.

    Args:
        name: Short, stable name, such as ``"no-clock"``.
        promise: Promise of the contract.
        why: Consequence for training or evaluation if it is broken.
        fix: How to fix a violation.
        test: Yields what is wrong with a case; raises :class:`Skipped` where the promise does not apply.
        after: Rules that must hold before this one can be judged.
    """

    name: str
    promise: str
    why: str
    fix: str
    test: Test
    after: tuple[str, ...] = ()


def rule(name: str, promise: str, *, why: str, fix: str, after: tuple[str, ...] = ()) -> Callable[[Test], Rule]:
    """Return a decorator that makes a rule of a test."""
    return lambda test: Rule(name, promise, why, fix, test, after)


def excerpts(ours: str, theirs: str) -> tuple[str, str]:
    """Return the parts of two texts around the place where they start to differ.

    >>> excerpts("left 1 right", "left 2 right")
    ('left 1 right', 'left 2 right')
    """
    pairs = zip(ours, theirs, strict=False)
    at = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(ours), len(theirs)))
    start = max(0, at - _EXCERPT)
    return ours[start : at + _EXCERPT], theirs[start : at + _EXCERPT]


def difference(what: str, ours: list[str], theirs: list[str], seed: int | None) -> Iterator[Finding]:
    """Yield where two episodes start to differ, nothing if they are equal.

    Args:
        what: Message if they differ.
        ours: The texts of the reset and the turns of one episode.
        theirs: Those of the other.
        seed: Seed of the episode.

    >>> next(difference("changed", ["a", "b"], ["a", "c"], 0))
    Finding(seen='changed', seed=0, turn=1, ours='b', theirs='c')
    """
    for turn, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            yield Finding(what, seed, turn, *excerpts(one, other))
            return
    if len(ours) != len(theirs):
        lengths = f"{len(ours) - 1} turns", f"{len(theirs) - 1} turns"
        yield Finding(what, seed, min(len(ours), len(theirs)), *lengths)


def raised(error: BaseException) -> str:
    """Return what was raised, and where in the author's code."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(f, line) for f, line in frames if not str(f.f_globals.get("__name__", "")).startswith(_INSIDE)]
    text = f"{type(error).__name__}: {str(error)[:_LONGEST_MESSAGE]}"
    if not own:
        return text
    frame, line = next(((f, n) for f, n in reversed(own) if not is_library(f.f_code.co_filename)), own[-1])
    return f"{text} in {frame.f_code.co_name}, line {line} of {Path(frame.f_code.co_filename).name}"
