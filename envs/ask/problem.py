"""What there is to find out: candidates with a known prior, and questions whose answers tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem, without what is hidden.

    Args:
        opening: What the agent reads first: all candidates, their weights, and the answers for each.
        names: Names of the candidates.
        weights: Weight of each candidate; the prior is proportional to it.
        questions: Names of the questions.
        answers: Number of the answer to each question for each candidate, of shape (candidates, questions).
        words: For each question the words of its answers.
    """

    opening: str
    names: tuple[str, ...]
    weights: Whole
    questions: tuple[str, ...]
    answers: Whole
    words: tuple[tuple[str, ...], ...]


def plain(name: str) -> str:
    """Return a name in small letters, without commas and a final full stop.

    >>> plain("Euro,brief,  year.")
    'euro brief year'
    """
    return " ".join(name.lower().strip().removesuffix(".").replace(",", " ").split())


class Sketch(NamedTuple):
    """What is drawn for a problem, from which the problem follows.

    Args:
        text: Canonical text.
        build: Makes the problem, which takes longer.
    """

    text: str
    build: Callable[[], Problem]


Kind = Callable[[np.random.Generator, int], Sketch]
"""Draws a problem of a level."""
