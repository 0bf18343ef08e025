"""Twenty questions: find a thing in a table of properties."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from turngym.envs.ask.problem import Problem, Sketch, Whole

Small: TypeAlias = npt.NDArray[np.int8]

_SIZES = {1: (32, 8), 2: (100, 10), 3: (200, 12)}
"""Level -> number of things and of properties."""
_SPARE = 2
"""Rows that are drawn for each that is used: some are equal."""
ANSWERS = ("yes", "no", "partly")
_LETTERS = bytes.maketrans(bytes(range(len(ANSWERS))), b"ynp")
# fmt: off
PROPERTIES = (
    "alive", "big", "blue", "bright", "cheap", "cold", "common", "dry", "edible", "electric", "fast", "flat", "fragile",
    "furry", "green", "hard", "heavy", "hollow", "hot", "light", "long", "loud", "metallic", "new", "old", "portable",
    "red", "rough", "round", "sharp", "shiny", "small", "soft", "striped", "sweet", "tall", "useful", "wet", "wild",
    "wooden",
)
# fmt: on
_SYLLABLES = [f"{one}{two}" for one in "bdfgklmnprstvz" for two in "aeiou"]
NAMES = tuple(
    "".join(pair) + "lnrs"[place % 4]
    for place, pair in enumerate(itertools.product(_SYLLABLES, _SYLLABLES))
    if place % 9 == 0
)
_OPENING = """I think of one of these things. Column w says how often I think of it; the others say whether it is
{properties}, in this order: y yes, n no, p partly.
thing   w {head}
{rows}
Which one is it?"""


def twenty(generator: np.random.Generator, level: int) -> Sketch:
    """Draw a table in which no two things have the same properties.

    >>> problem = twenty(np.random.default_rng(0), 1).build()
    >>> len(problem.names), len(problem.questions), len(set(map(tuple, problem.answers.tolist())))
    (32, 8, 32)
    """
    size, count = _SIZES[level]
    properties = tuple(PROPERTIES[each] for each in sorted(generator.permutation(len(PROPERTIES))[:count].tolist()))
    places = generator.permutation(len(NAMES))[:size]
    yes, partly = generator.uniform(0.25, 0.6, count), generator.uniform(0.05, 0.25, count)
    shares = generator.random((size * _SPARE, count))
    is_other = (shares >= yes).view(np.int8)
    answers = is_other + (shares < yes + partly).view(np.int8) * is_other
    weights = generator.integers(1, 2 if level == 1 else 4, size)
    drawn = b"".join(each.astype("<i2").tobytes() for each in (places, weights)) + answers.tobytes()
    text = f"{level} {' '.join(properties)} {drawn.hex()}"
    return Sketch(text, partial(_built, properties, places, answers, weights))


def _built(properties: tuple[str, ...], places: Whole, answers: Small, weights: Whole) -> Problem:
    """Return the problem with the first rows of answers that are different."""
    size, count = len(weights), len(properties)
    drawn = answers.tobytes()
    rows = list(dict.fromkeys([drawn[start : start + count] for start in range(0, len(drawn), count)]))[:size]
    kept = b"".join(rows)
    chosen = np.frombuffer(kept, np.int8).reshape(len(rows), count).astype(np.int64)
    names = tuple([NAMES[each] for each in places[: len(rows)].tolist()])
    letters = " ".join(kept.translate(_LETTERS).decode())
    table = [letters[start : start + 2 * count - 1] for start in range(0, len(letters), 2 * count)]
    columns = zip(names, weights.tolist(), table, strict=False)
    lines = "\n".join([f"{name:<7} {weight} {row}" for name, weight, row in columns])
    head = " ".join(str(place % 10) for place in range(1, count + 1))
    opening = _OPENING.format(properties=", ".join(properties), head=head, rows=lines)
    return Problem(opening, names, weights[: len(rows)], properties, chosen, (ANSWERS,) * count)
