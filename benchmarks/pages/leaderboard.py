"""The page of a leaderboard: a table for each suite, bars by family and environment, and details of each submission."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.benchmarks.leaderboard.entries import Entry
from turngym.benchmarks.leaderboard.table import UNKNOWN_OF_LOGS, Group, Leaderboard, Ranks, distinctions
from turngym.benchmarks.pages.submission import about, duration, model_ids, values
from turngym.benchmarks.pages.tables import (
    Axis,
    Cell,
    Column,
    Facet,
    Line,
    Table,
    axis_around,
    estimate_cell,
    facet,
    figure,
    page,
    rank_cell,
)
from turngym.benchmarks.statistics.normalised import HIGH, LOW
from turngym.trainers.core.wording import UNKNOWN, counted

STATUS = {
    "replayed": "files and numbers agree, and all that raises its mean came out the same when played again",
    "partly replayed": "files and numbers agree, and some of what raises its mean came out the same when played again",
    "self-reported": "files and numbers agree, but not every environment could be played again",
    "not checked": "nothing was checked",
    "log": "read from a log of another suite: nothing was checked or played again, tasks count as the same where their "
    f"names are, and these are not known: {', '.join(UNKNOWN_OF_LOGS)}",
}
_REPORTED = " *"
_MOST_OUTCOMES = 4
"""Outcomes that have columns; more of them are in the details alone."""


def leaderboard_page(board: Leaderboard, title: str = "Leaderboard") -> str:
    """Return the page.

    Args:
        board: The tables.
        title: Heading of the page.
    """
    entries = [entry for group in board.groups for entry in group.entries]
    subtitle = f"{counted(len(entries), 'submission')} in {counted(len(board.groups), 'table')}."
    named = zip(board.groups, distinctions(board.groups), strict=True)
    statuses = {entry.status for entry in entries}
    return page(
        title,
        "leaderboard.html",
        subtitle,
        groups=[_shown_group(group, f"t{place}", distinction) for place, (group, distinction) in enumerate(named)],
        statuses=[(name, words) for name, words in STATUS.items() if name in statuses],
        left_out=board.left_out,
    )


def _shown_group(group: Group, key: str, distinction: str) -> dict[str, Any]:
    keys = [f"{key}r{place}" for place in range(len(group.entries))]
    title = f"{group.suite}, version {group.version}"
    return {
        "key": key,
        "title": f"{title}: {distinction}" if distinction else title,
        "protocol": group.protocol,
        "table": _board_table(group, keys),
        "metric": metric_name(group.metric).capitalize(),
        "families": _facets(group, keys, group.families),
        "environments": _facets(group, keys, {label.removeprefix("turngym/"): (label,) for label in group.labels}),
        "submissions": [about(group, entry, mine) for entry, mine in zip(group.entries, keys, strict=True)],
    }


def _board_table(group: Group, keys: Sequence[str]) -> Table:
    """Return the table of a group.

    Args:
        group: The submissions.
        keys: Marker of each on the page.
    """
    columns = [column for column, _ in _columns(group)]
    makers = [make for _, make in _columns(group)]
    lines = []
    for entry, ranks, key in zip(group.entries, group.ranks, keys, strict=True):
        cells = [_rank_cell(ranks), _name_cell(entry, key), *(make(entry) for make in makers)]
        lines.append(Line(key, cells, " ".join([entry.folder.name, *map(str, values(entry.submission.metadata))])))
    first = [Column("rank", "ascending", is_number=False), Column("agent", "ascending", is_number=False)]
    what = [
        counted(len(lines), "submission"),
        f"{group.metric} over {counted(len(group.labels), 'environment')} with equal weights",
        counted(group.tasks, "task"),
        f"tasks and rules {group.digest}",
    ]
    return Table(", ".join(what) + ".", [*first, *columns], lines, sorted_by=0)


def _rank_cell(ranks: Ranks | None) -> Cell:
    return Cell("incomplete", kind="badge") if ranks is None else rank_cell(*ranks)


def _name_cell(entry: Entry, key: str) -> Cell:
    models = "baseline" if entry.submission.config["agent"] in (LOW, HIGH) else model_ids(entry)
    note = models if models != entry.name else ""
    return Cell(entry.name or "(no name)", entry.name.lower(), "who", link=f"#{key}", note=note)


def _columns(group: Group) -> Iterator[tuple[Column, Callable[[Entry], Cell]]]:
    """Yield the columns behind rank and name; one that would be empty in every row is left out."""
    shares = group.metric == "success"
    axis = Axis(0, 1) if shares else axis_around([entry.mean for entry in group.entries], 0, 0.001)
    scale = 100 if shares else 1
    yield (
        Column(metric_name(group.metric), is_number=False, title="Mean with equal weight for each environment"),
        lambda entry: estimate_cell(entry.mean, axis, scale, 1 if shares else 3),
    )
    if not shares:
        yield (
            Column("success %", is_number=False),
            lambda entry: estimate_cell(entry.mean_of("success"), Axis(0, 1), 100),
        )
    if group.scale:
        means = [mean for entry in group.entries if (mean := group.normalised_mean(entry)) is not None]
        wide = axis_around(means, 0, 100)
        yield (
            Column("normalised", is_number=False, title="0 is random play, 100 the expert"),
            lambda entry: estimate_cell(group.normalised_mean(entry), wide),
        )
    for name in _repeated_names(group):
        is_chosen = name.startswith("chosen_of_")
        head = f"{name.replace('chosen_of_', 'best of ')} %{_REPORTED if is_chosen else ''}"
        yield Column(head), lambda entry, name=name: _share_cell(entry.repeated.get(name))  # type: ignore[misc]
    for name in _outcome_names(group):
        told = Column(f"outcome {name}", title="Mean over episodes at their ends, as the environments define it")
        yield told, lambda entry, name=name: _outcome_cell(entry.outcomes.get(name))  # type: ignore[misc]
    yield Column("turns", "ascending", title="Mean turns of an episode"), lambda entry: _number_cell(_turns(entry))
    yield (
        Column("invalid %", "ascending", title="Share of invalid actions"),
        lambda entry: _number_cell(100 * entry.invalid_actions),
    )
    if any(_tokens(entry) for entry in group.entries):
        yield (
            Column(f"tokens{_REPORTED}", "ascending", title="Tokens read and written in an episode"),
            lambda entry: _number_cell(_tokens(entry) / entry.episodes if _tokens(entry) else math.nan, 0),
        )
    if any(entry.usage.cost is not None for entry in group.entries):
        yield (
            Column(
                f"cost{_REPORTED}",
                "ascending",
                title="In the currency of the submission's price table, of all episodes",
            ),
            lambda entry: _number_cell(math.nan if entry.usage.cost is None else entry.usage.cost, 2),
        )
    yield (
        Column(
            f"time{_REPORTED}",
            "ascending",
            title="From the first episode to the last, pauses included, baselines left out",
        ),
        lambda entry: Cell(duration(entry.seconds), entry.seconds),
    )
    yield Column("date", is_number=False), _date_cell
    yield Column("checked", "ascending", is_number=False), lambda entry: Cell(entry.status, entry.status, "badge")


def metric_name(metric: str) -> str:
    """Return the suite's metric with its unit."""
    return "success %" if metric == "success" else metric


def _repeated_names(group: Group) -> list[str]:
    """Return the pass@k, pass^k and chosen_of_N with the largest number that any row has."""
    names = [name for entry in group.entries for name in entry.repeated]
    starts = ("pass@", "pass^", "chosen_of_")
    largest = {start: max((int(n[len(start) :]) for n in names if n.startswith(start)), default=0) for start in starts}
    return [f"{start}{k}" for start, k in largest.items() if k > 1]


def _outcome_names(group: Group) -> list[str]:
    """Return the outcomes that any row has; none where they are too many for columns, as the details list them."""
    names = list(dict.fromkeys(name for entry in group.entries for name in entry.outcomes))
    return names if len(names) <= _MOST_OUTCOMES else []


def _outcome_cell(estimate: Estimate | None) -> Cell:
    return _number_cell(math.nan if estimate is None else estimate.value, 3)


def _share_cell(estimate: Estimate | None) -> Cell:
    return _number_cell(math.nan if estimate is None else 100 * estimate.value)


def _number_cell(value: float, digits: int = 1) -> Cell:
    return Cell(figure(value, digits), value)


def _date_cell(entry: Entry) -> Cell:
    date = UNKNOWN if entry.is_log else str(entry.submission.metadata["date"])[:10]
    return Cell(date, date or None, "date")


def _turns(entry: Entry) -> float:
    return entry.mean_of("turns").value


def _tokens(entry: Entry) -> int:
    return entry.usage.tokens_in + entry.usage.tokens_out


def _facets(group: Group, keys: Sequence[str], parts: Mapping[str, Sequence[str]]) -> list[Facet]:
    found = []
    for title, labels in parts.items():
        means = [entry.mean_of(group.metric, labels) for entry in group.entries]
        axis = Axis(0, 1) if group.metric == "success" else axis_around(means, 0, 0.001)
        entries = [(key, entry.name, mean) for key, entry, mean in zip(keys, group.entries, means, strict=True)]
        shares = group.metric == "success"
        found.append(facet(title, entries, axis, 100 if shares else 1, 0 if shares else 2))
    return found
