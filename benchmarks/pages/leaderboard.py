"""The page of a leaderboard: a table for each suite, bars by family and environment, and details of each submission."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from turngym.agents.intervals import Estimate
from turngym.benchmarks.leaderboard.entries import Entry, LeftOut
from turngym.benchmarks.leaderboard.table import Group, Leaderboard, Ranks, distinctions
from turngym.benchmarks.pages.shell import asset, page
from turngym.benchmarks.pages.submission import about, duration, model_ids, values
from turngym.benchmarks.pages.tables import (
    Axis,
    Cell,
    Column,
    Line,
    axis_around,
    badge,
    estimate_cell,
    facet,
    figure,
    filter_box,
    sortable_table,
)
from turngym.benchmarks.statistics.normalised import HIGH, LOW
from turngym.trainers.core.wording import counted
from turngym.web.html import Html, details, join, tag

HELP = (
    "Bars show the mean and, as a line with ends, its 95 % interval, which resamples whole tasks. A rank such as 2–4 "
    "is the range that overlapping intervals leave open; turngym compare tells two rows apart better, task by task."
)
STATUS = {
    "replayed": "files and numbers agree, and all that raises its mean came out the same when played again",
    "partly replayed": "files and numbers agree, and some of what raises its mean came out the same when played again",
    "self-reported": "files and numbers agree, but not every environment could be played again",
    "not checked": "nothing was checked",
}
_ASK_TO_REPLAY = (
    "What no replay can show is who chose the actions. Columns marked with * are as the submission reports them: "
    "tokens, costs, times, and which attempt its verifier chose."
)
_REPORTED = " *"


def leaderboard_page(board: Leaderboard, title: str = "Leaderboard") -> str:
    """Return the page.

    Args:
        board: The tables.
        title: Heading of the page.
    """
    entries = [entry for group in board.groups for entry in group.entries]
    subtitle = f"{counted(len(entries), 'submission')} in {counted(len(board.groups), 'table')}."
    sections = [_left_out_notice(board.left_out)]
    if entries:
        sections += [tag("p", HELP, class_="quiet"), filter_box("Filter: name, model, date …")]
    else:
        sections.append(tag("p", "There is no submission to show."))
    for place, (group, distinction) in enumerate(zip(board.groups, distinctions(board.groups), strict=True)):
        sections.append(_group_section(group, f"t{place}", distinction))
    sections += [_status_section(entries), _left_out_section(board.left_out)]
    return page(title, *sections, script=asset("tables.js"), style=asset("tables.css"), subtitle=subtitle)


def _group_section(group: Group, key: str, distinction: str) -> Html:
    keys = [f"{key}r{place}" for place in range(len(group.entries))]
    title = f"{group.suite}, version {group.version}"
    return tag(
        "section",
        tag("h2", f"{title}: {distinction}" if distinction else title),
        details("Protocol", tag("p", group.protocol)) if group.protocol else Html(),
        board_table(group, keys),
        bars(group, keys),
        tag("h3", "The submissions"),
        *(about(group, entry, mine) for entry, mine in zip(group.entries, keys, strict=True)),
        id=key,
    )


def board_table(group: Group, keys: Sequence[str]) -> Html:
    """Return the table of a group.

    Args:
        group: The submissions.
        keys: What marks each of them on the page.
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
    return sortable_table(", ".join(what) + ".", [*first, *columns], lines, sorted_by=0)


def _rank_cell(ranks: Ranks | None) -> Cell:
    if ranks is None:
        return Cell(badge("incomplete"))
    best, worst = ranks
    return Cell(tag("span", str(best) if best == worst else f"{best}–{worst}", class_="ranks"), best + worst / 1e6)


def _name_cell(entry: Entry, key: str) -> Cell:
    name = tag("span", tag("a", entry.name or "(no name)", href=f"#{key}"), class_="who")
    models = "baseline" if entry.submission.config["agent"] in (LOW, HIGH) else model_ids(entry)
    model = tag("span", models, class_="model") if models and models != entry.name else Html()
    return Cell(join([name, model]), entry.name.lower())


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
    yield Column("checked", "ascending", is_number=False), lambda entry: Cell(badge(entry.status), entry.status)


def metric_name(metric: str) -> str:
    """Return the suite's metric with its unit."""
    return "success %" if metric == "success" else metric


def _repeated_names(group: Group) -> list[str]:
    """Return the pass@k, pass^k and chosen_of_N with the largest number that any row has."""
    names = [name for entry in group.entries for name in entry.repeated]
    starts = ("pass@", "pass^", "chosen_of_")
    largest = {start: max((int(n[len(start) :]) for n in names if n.startswith(start)), default=0) for start in starts}
    return [f"{start}{k}" for start, k in largest.items() if k > 1]


def _share_cell(estimate: Estimate | None) -> Cell:
    return _number_cell(math.nan if estimate is None else 100 * estimate.value)


def _number_cell(value: float, digits: int = 1) -> Cell:
    return Cell(figure(value, digits), value)


def _date_cell(entry: Entry) -> Cell:
    date = str(entry.submission.metadata["date"])
    return Cell(tag("span", date[:10], class_="date"), date[:10] or None)


def _turns(entry: Entry) -> float:
    return entry.mean_of("turns").value


def _tokens(entry: Entry) -> int:
    return entry.usage.tokens_in + entry.usage.tokens_out


def bars(group: Group, keys: Sequence[str]) -> Html:
    """Return bars by family, and by environment behind something to open."""
    families = (
        [tag("h3", f"{metric_name(group.metric).capitalize()} by family"), _facets(group, keys, group.families)]
        if len(group.families) > 1
        else []
    )
    environments = {label.removeprefix("turngym/"): (label,) for label in group.labels}
    if len(environments) == 1:
        return Html()
    inner = _facets(group, keys, environments)
    return join(
        [*families, details(f"{metric_name(group.metric).capitalize()} by environment ({len(environments)})", inner)]
    )


def _facets(group: Group, keys: Sequence[str], parts: Mapping[str, Sequence[str]]) -> Html:
    found = []
    for title, labels in parts.items():
        means = [entry.mean_of(group.metric, labels) for entry in group.entries]
        axis = Axis(0, 1) if group.metric == "success" else axis_around(means, 0, 0.001)
        entries = [(key, entry.name, mean) for key, entry, mean in zip(keys, group.entries, means, strict=True)]
        shares = group.metric == "success"
        found.append(facet(title, entries, axis, 100 if shares else 1, 0 if shares else 2))
    return tag("div", *found, class_="facets")


def _status_section(entries: Sequence[Entry]) -> Html:
    told = {entry.status for entry in entries}
    items = [join([tag("dt", badge(name)), tag("dd", words)]) for name, words in STATUS.items() if name in told]
    if not items:
        return Html()
    return tag("section", tag("h2", "What was checked"), tag("dl", *items), tag("p", _ASK_TO_REPLAY, class_="quiet"))


def _left_out_notice(left_out: Sequence[LeftOut]) -> Html:
    if not left_out:
        return Html()
    words = f"{counted(len(left_out), 'folder')} {'is' if len(left_out) == 1 else 'are'} in no table: "
    return tag("p", words, tag("a", "see why", href="#left-out"), ".", class_="warn")


def _left_out_section(left_out: Sequence[LeftOut]) -> Html:
    if not left_out:
        return Html()
    items = []
    for each in left_out:
        names = tag("p", "Found: ", tag("span", ", ".join(each.findings), class_="bad")) if each.findings else Html()
        items.append(tag("li", tag("b", str(each.folder)), tag("p", each.reason), names))
    return tag("section", tag("h2", "Folders in no table"), tag("ul", *items), id="left-out")
