"""Rewards for single searches: information gain less redundancy (StepSearch), and tool efficiency (OTC).

Sources: StepSearch, arXiv 2505.15107, repository Zillwang/StepSearch; OTC, arXiv 2504.14870.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from turngym.arithmetic import float_sum
from turngym.envs.search.answers import normalise

_TOKEN = re.compile(r"\b\w\w+\b")


def similarity(texts: Sequence[str], query: str) -> list[float]:
    """Return the cosine of TF-IDF vectors of the query and each text, all normalised as answers are.

    The vectors are fitted on the query and the texts together: idf = ln((1 + n) / (1 + df)) + 1, length 1.

    >>> similarity(["red wine of Spain", "blue cheese"], "red wine of Spain")[1]
    0.0
    """
    counts = [Counter(_TOKEN.findall(normalise(text))) for text in (query, *texts)]
    having = Counter(word for count in counts for word in count)
    idf = {word: math.log((1 + len(counts)) / (1 + times)) + 1 for word, times in having.items()}
    vectors = [_unit({word: times * idf[word] for word, times in count.items()}) for count in counts]
    first = vectors[0]
    return [float_sum(weight * first.get(word, 0.0) for word, weight in vector.items()) for vector in vectors[1:]]


def _unit(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(float_sum(weight * weight for weight in vector.values()))
    return {word: weight / length for word, weight in vector.items()} if length else {}


class SearchProgress:
    """Results of the searches of one episode so far.

    Args:
        gold: Texts of the passages that hold the answer.

    >>> progress = SearchProgress(["red wine comes from Spain"])
    >>> gain, redundancy = progress.add(["red wine comes from Spain", "cheese"])
    >>> round(gain, 9), redundancy
    (1.0, 0.0)
    >>> progress.add(["cheese", "butter"])
    (0.0, 0.5)
    """

    def __init__(self, gold: Sequence[str]) -> None:
        self._gold = tuple(gold)
        self._best = [0.0] * len(self._gold)
        self._seen: set[str] = set()

    def add(self, passages: Sequence[str]) -> tuple[float, float]:
        """Take in the passages of one search.

        Returns:
            The gain: mean over gold passages of the rise of the best similarity so far; 0 without gold passages. The
            redundancy: share of the passages that had been returned before, in this search or an earlier one.
        """
        rows = [similarity(self._gold, passage) if passage.strip() else [0.0] * len(self._gold) for passage in passages]
        best = [max(column) for column in zip(*rows, strict=True)] if rows else [0.0] * len(self._gold)
        return self.add_scores(best), self._redundancy(passages)

    def add_scores(self, best: Sequence[float]) -> float:
        """Return the gain of a search whose best similarity to each gold passage is given."""
        gain = float_sum(max(new - old, 0.0) for new, old in zip(best, self._best, strict=True))
        self._best = [max(new, old) for new, old in zip(best, self._best, strict=True)]
        return gain / len(self._gold) if self._gold else 0.0

    def _redundancy(self, passages: Sequence[str]) -> float:
        repeated = 0
        for passage in passages:
            repeated += passage in self._seen
            self._seen.add(passage)
        return repeated / len(passages) if passages else 0.0


def tool_efficiency(calls: int, most_calls: int) -> float:
    """Return how economical a correct answer after so many calls was: OTC's form for PPO, to be multiplied.

    >>> [round(tool_efficiency(calls, 4), 6) for calls in (0, 1, 2, 4)]
    [1.0, 0.866025, 0.707107, 0.5]
    """
    return math.cos(calls * math.pi / (2 * calls + most_calls)) if calls else 1.0


def group_tool_efficiency(calls: int, fewest: int, most_calls: int) -> float:
    """Return OTC's form for groups: relative to the fewest calls among the correct episodes of the group.

    >>> [round(group_tool_efficiency(m, n, 4), 6) for m, n in ((0, 0), (2, 0), (2, 2), (4, 2))]
    [1.0, 0.707107, 1.0, 0.866025]
    """
    if not fewest:
        return tool_efficiency(calls, most_calls)
    return math.sin(2 * fewest * calls / (calls + fewest) * math.pi / (2 * fewest))
