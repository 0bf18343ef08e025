"""The posterior over candidates, and what questions tell, in bits."""

from __future__ import annotations

import math

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.ask.problem import Problem

DIGITS = 9
"""Decimals of bits: below what differs between libraries of mathematics."""


def entropy(weights: list[int]) -> float:
    """Return the entropy of a distribution in bits.

    Args:
        weights: Positive whole numbers that the probabilities are proportional to.

    >>> entropy([1, 1, 1, 1]), entropy([2, 1, 1])
    (2.0, 1.5)
    """
    total = sum(weights)
    return round(math.log2(total) - float_sum(each * math.log2(each) for each in weights) / total, DIGITS) + 0.0


class Belief:
    """What is known after some answers. Answers are exact, so the candidates that fit keep their weights.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.asked: dict[int, int] = {}
        """Question -> number of its answer."""
        self._left = np.arange(len(problem.names))
        self._expected: dict[int, float] | None = None
        self.start = self.bits = entropy(problem.weights.tolist())
        """Entropy before any answer, and now."""

    def learn(self, question: int, answer: int) -> None:
        """Take in an answer."""
        problem = self._problem
        self._left = self._left[problem.answers[self._left, question] == answer]
        self.asked[question] = answer
        self.bits = entropy(problem.weights[self._left].tolist())
        self._expected = None

    @property
    def left(self) -> list[int]:
        """Places of the candidates that fit all answers."""
        return [int(each) for each in self._left]

    @property
    def likeliest(self) -> int:
        """Place of the candidate with the highest probability, the first of several."""
        return int(self._left[int(np.argmax(self._problem.weights[self._left]))])

    def expected(self) -> dict[int, float]:
        """Return for each question the expected information gain: the entropy of its answer."""
        if self._expected is None:
            problem, left = self._problem, self._left
            count, most = len(problem.questions), max(map(len, problem.words))
            places = problem.answers[left] + most * np.arange(count)
            weights = np.bincount(places.ravel(), problem.weights[left].repeat(count), most * count).astype(np.int64)
            rows = weights.reshape(count, most).tolist()
            self._expected = {question: entropy([each for each in row if each]) for question, row in enumerate(rows)}
        return self._expected

    def best(self) -> int:
        """Return the question with the highest expected gain, the first of several."""
        gains = self.expected()
        return max(gains, key=lambda question: (gains[question], -question))
