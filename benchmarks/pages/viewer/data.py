"""Requests of the viewer's page: lists of episodes, episodes, and pairs of them, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from turngym.benchmarks.pages.viewer.differences import Pair, differing_turn, pairs
from turngym.benchmarks.pages.viewer.forms import Form
from turngym.benchmarks.pages.viewer.replayed import replayed_apart
from turngym.benchmarks.pages.viewer.runs import Run
from turngym.benchmarks.pages.viewer.summaries import Summary, matches, words_of

MOST_ROWS = 500


class Viewer:
    """Answers the page's questions about one run, or about two.

    Args:
        first: The run.
        second: Another one to compare with.
    """

    def __init__(self, first: Run, second: Run | None = None) -> None:
        self.runs = [first] if second is None else [first, second]
        self.is_diff = second is not None
        for run in self.runs:
            run.has_traces = self.is_diff
        self._lock = Lock()
        self._pairs: list[Pair] | None = None

    @property
    def title(self) -> str:
        """Path to view."""
        return " and ".join(run.name for run in self.runs)

    @property
    def subtitle(self) -> str:
        """Kind of the source."""
        return " and ".join(dict.fromkeys(run.kind for run in self.runs))

    def about(self) -> dict[str, Any]:
        """Return the initial data of the page."""
        names = [run.name for run in self.runs]
        return {"diff": self.is_diff, "names": [f"A {names[0]}", f"B {names[1]}"] if self.is_diff else names}

    def search(self) -> None:
        """Find the episodes in the background."""
        for run in self.runs:
            run.search()

    @property
    def is_complete(self) -> bool:
        """True if all episodes are found."""
        return all(run.is_complete for run in self.runs)

    def rows(self, start: int, count: int, query: str = "") -> dict[str, Any]:
        """Return a part of the list.

        Args:
            start: Position of the first row among those that fit the query.
            count: Number of rows, at most :data:`MOST_ROWS`.
            query: Words that have to occur; see :func:`turngym.benchmarks.pages.viewer.summaries.matches`.
        """
        words, stop = words_of(query), start + min(count, MOST_ROWS)
        complete = self.is_complete  # first: what is counted afterwards can only be more
        if self.is_diff:
            rows = [pair.row(n) for n, pair in enumerate(self._sorted_pairs()) if _pair_matches(pair, words)]
            found, shown = len(rows), rows[start:stop]
        else:
            known: Sequence[Summary] = self.runs[0].known
            known = [each for each in known[: len(known)] if matches(each, words)] if words else known
            found, shown = len(known), [each.row() for each in known[start:stop]]
        problems = [run.problem for run in self.runs if run.problem]
        known_yet = sum(len(run.known) for run in self.runs)
        return {"rows": shown, "found": found, "known": known_yet, "complete": complete, "problems": problems}

    def all_rows(self, query: str = "") -> Iterator[dict[str, Any]]:
        """Yield every row that fits a query, of those that are found by now."""
        words = words_of(query)
        if self.is_diff:
            found = (pair.row(n) for n, pair in enumerate(self._sorted_pairs()) if _pair_matches(pair, words))
        else:
            known = self.runs[0].known
            found = (each.row() for each in known[: len(known)] if matches(each, words))
        yield from found

    def _sorted_pairs(self) -> list[Pair]:
        """Return the pairs, none before all episodes are found: their order, and so their numbers, would change."""
        with self._lock:
            if self._pairs is None and self.is_complete:
                self._pairs = pairs(*(run.known for run in self.runs))
            return self._pairs or []

    def episode(self, index: int) -> dict[str, Any] | None:
        """Return an episode, or a pair of them; None if there is none of that number."""
        if not self.is_diff:
            if not 0 <= index < self.runs[0].wait_for(index + 1):
                return None
            return {"row": self.runs[0].known[index].row(), "sides": [self._form(0, self.runs[0].known[index])]}
        found = self._sorted_pairs()
        if not 0 <= index < len(found):
            return None
        pair = found[index]
        sides = [None if each is None else self._form(k, each) for k, each in enumerate((pair.first, pair.second))]
        turns = [[] if side is None else side["turns"] for side in sides]
        differs = None if None in sides else differing_turn(turns[0], turns[1])
        return {"row": pair.row(index), "sides": sides, "differs": differs}

    def _form(self, number: int, summary: Summary) -> Form:
        form = self.runs[number].form(summary)
        replay = form["replay"]
        if replay is not None:
            form = {**form, "replay": {key: replay[key] for key in ("command", "has_pictures")}}
        return form

    def replayed(self, index: int, side: int) -> Form | None:
        """Play an episode again; None if there is none of that number, or nothing to play it from."""
        summary = self._summary(index, side)
        return None if summary is None else self._replayed(side, summary)

    def _summary(self, index: int, side: int) -> Summary | None:
        if side not in range(len(self.runs)):
            return None
        if self.is_diff:
            found = self._sorted_pairs()
            return (found[index].first, found[index].second)[side] if 0 <= index < len(found) else None
        return self.runs[0].known[index] if 0 <= index < len(self.runs[0].known) else None

    def _replayed(self, side: int, summary: Summary) -> Form | None:
        form = self.runs[side].form(summary)
        if form["replay"] is None:
            return None
        return replayed_apart(form["replay"], [turn.get("seen") for turn in form["turns"]])


def _pair_matches(pair: Pair, words: Sequence[str]) -> bool:
    own = [word for word in words if word not in ("different", "equal")]
    if ("different" in words and not any(pair.distance())) or ("equal" in words and any(pair.distance())):
        return False
    return any(each is not None and matches(each, own) for each in (pair.first, pair.second))
