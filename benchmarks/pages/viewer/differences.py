"""Two runs on the same tasks: which episodes belong together, how far they differ, and where they start to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from turngym.benchmarks.pages.viewer.summaries import Summary, first_difference

_PairKey: TypeAlias = tuple[str, str, str, int, int]
_ALONE = 1e-12
_TURN_FIELDS = ("seen", "prompt", "completion", "action", "reward", "valid")


@dataclass(frozen=True, slots=True)
class Pair:
    """The episodes of one task in two runs.

    Args:
        first: Value of the first run; None if only the second one has the task.
        second: Value of the second run.
        turn: The first turn whose actions differ, from 0; None where all are equal, or one episode is missing.
    """

    first: Summary | None
    second: Summary | None
    turn: int | None = None

    @property
    def any(self) -> Summary:
        """One of both, for what they have in common."""
        found = self.first or self.second
        assert found is not None
        return found

    def distance(self) -> tuple[float, ...]:
        """Return how far they differ, for sorting: outcome, score, return, then how early the actions part.

        Parts of one run only differ by less than anything in both, and equal episodes do not differ.
        """
        if self.first is None or self.second is None:
            return (0.0, 0.0, 0.0, _ALONE)
        one, other = self.first, self.second
        apart = 0.0 if self.turn is None else 1.0 / (1 + self.turn)
        return (
            float(one.success != other.success),
            abs((one.score or 0.0) - (other.score or 0.0)),
            abs((one.returns or 0.0) - (other.returns or 0.0)),
            apart,
        )

    def row(self, index: int) -> dict[str, Any]:
        """Return what the list shows of it, as JSON can hold it."""
        found = {**self.any.row(), "n": index, "differs": self.turn, "apart": any(self.distance())}
        return {**found, "sides": [None if each is None else each.row() for each in (self.first, self.second)]}


def pairs(first: Iterable[Summary], second: Iterable[Summary]) -> list[Pair]:
    """Return the episodes of two runs task by task, those that differ most first and equal ones last.

    Episodes belong together by label, seed, seat and attempt; where that names several, by their order. Labels are
    left out where the runs share none.

    >>> from turngym.benchmarks.pages.viewer.jsonl import Place
    >>> won, lost = (Summary(0, 0, Place(0, 1, 1), seed="7", success=success) for success in (1, 0))
    >>> [(pair.any.seed, pair.distance()[0]) for pair in pairs([won], [lost])]
    [('7', 1.0)]
    """
    one, other = list(first), list(second)
    by_name = bool({each.name for each in one} & {each.name for each in other})
    mine, theirs = _keyed(one, by_name), _keyed(other, by_name)
    found = [Pair(summary, theirs.get(key), _parting(summary, theirs.get(key))) for key, summary in mine.items()]
    found += [Pair(None, summary) for key, summary in theirs.items() if key not in mine]
    return sorted(found, key=lambda pair: [-part for part in pair.distance()])


def _parting(one: Summary, other: Summary | None) -> int | None:
    return None if other is None else first_difference(one.trace, other.trace)


def _keyed(summaries: Sequence[Summary], by_name: bool) -> dict[_PairKey, Summary]:
    seen: Counter[tuple[str, str, str, int]] = Counter()
    found: dict[_PairKey, Summary] = {}
    for each in summaries:
        name = each.name if by_name else each.env
        task = each.seed or each.task or each.instance
        key = name, task, each.seat or (each.task if ":" in each.task else ""), each.attempt
        found[(*key, seen[key])] = each
        seen[key] += 1
    return found


def differing_turn(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the first turn at which two episodes differ in anything that both recorded, or at which one has ended.

    >>> differing_turn([{"seen": "a", "action": "x"}], [{"seen": "a", "action": "x", "reward": 1.0}])
    >>> differing_turn([{"action": "x"}], [{"action": "x"}, {"action": "y"}])
    1
    """
    for turn, (one, other) in enumerate(zip(first, second, strict=False)):
        if any(one[key] != other[key] for key in _TURN_FIELDS if key in one and key in other):
            return turn
    shorter = min(len(first), len(second))
    return None if len(first) == len(second) else shorter
