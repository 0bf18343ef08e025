"""The page of one evaluation: its numbers by environment, beside those of the baselines."""

from __future__ import annotations

from pathlib import Path

from turngym.benchmarks.leaderboard.entries import Entry, LeftOut, baseline, read_entry, tasks_digest
from turngym.benchmarks.leaderboard.table import Group, group_of
from turngym.benchmarks.pages.leaderboard import metric_name
from turngym.benchmarks.pages.shell import asset, page
from turngym.benchmarks.pages.submission import about
from turngym.benchmarks.pages.tables import (
    Axis,
    Cell,
    Column,
    Line,
    axis_around,
    estimate_cell,
    facet,
    figure,
    filter_box,
    interval_text,
    sortable_table,
)
from turngym.benchmarks.statistics.normalised import HIGH, LOW
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.trainers.core.wording import UNKNOWN, counted
from turngym.web.html import Html, details, join, tag

_SHOWN_FAULTS = 10


def evaluation_page(entry: Entry) -> str:
    """Return the page of a submission; nothing of it is checked."""
    group = group_of([entry], tasks_digest(entry.submission))
    suite = f"{group.suite}, version {group.version}" if group.version else group.suite
    subtitle = f"{entry.name} on {suite}: {counted(entry.episodes, 'episode')}, {entry.submission.metadata['date']}."
    return page(
        f"Evaluation: {entry.name}",
        _headline(group, entry),
        tag("h2", "By environment"),
        filter_box("Filter: environment, family …") if len(group.labels) > 1 else Html(),
        environments_table(group, entry),
        _families(group, entry),
        tag("h2", "The submission"),
        about(group, entry, "about"),
        details("Protocol", tag("p", group.protocol)) if group.protocol else Html(),
        _faults(entry),
        script=asset("tables.js"),
        style=asset("tables.css"),
        subtitle=subtitle,
    )


def _headline(group: Group, entry: Entry) -> Html:
    shares = group.metric == "success"
    scale, digits, unit = (100, 1, " %") if shares else (1, 3, "")
    mean = entry.mean
    words = [
        f"{group.metric.capitalize()} {figure(scale * mean.value, digits)}{unit}, 95 % interval "
        f"{interval_text(mean, scale, digits)}{unit}"
    ]
    if len(group.labels) > 1:
        words.append(f": the mean over {len(group.labels)} environments with equal weights")
    share = group.normalised_mean(entry)
    if share is not None:
        words.append(
            f". Normalised {figure(share.value)} ({interval_text(share)}), where 0 is random play and 100 the expert"
        )
    sentence = tag("p", *words, ".", class_="headline")
    if entry.is_complete:
        return sentence
    warning = "It is not complete: not every task has all its episodes, so it is no fair sample of the suite."
    return join([tag("p", warning, class_="warn"), sentence])


def _families(group: Group, entry: Entry) -> Html:
    if len(group.families) < 2:
        return Html()
    shares = group.metric == "success"
    means = {family: entry.mean_of(group.metric, labels) for family, labels in group.families.items()}
    axis = Axis(0, 1) if shares else axis_around(list(means.values()), 0, 0.001)
    entries = [(f"f{place}", family, mean) for place, (family, mean) in enumerate(means.items())]
    scale, digits = (100, 1) if shares else (1, 3)
    title = f"{metric_name(group.metric).capitalize()} by family"
    return tag("div", facet(title, entries, axis, scale, digits), class_="narrow")


def environments_table(group: Group, entry: Entry) -> Html:
    """Return a row for each environment."""
    shares = group.metric == "success"
    scale, digits = (100, 1) if shares else (1, 3)
    estimates = entry.estimates(group.metric)
    axis = Axis(0, 1) if shares else axis_around(list(estimates.values()), 0, 0.001)
    beside = {name: found for name in (LOW, HIGH) if (found := baseline(entry, name)) is not None}
    families = {label: family for family, labels in group.families.items() for label in labels}
    normalised, others = group.normalised(entry), _other_numbers(entry)
    columns = [
        Column("environment", "ascending", is_number=False),
        *([Column("family", "ascending", is_number=False)] if families else []),
        Column(metric_name(group.metric), is_number=False),
        *(Column(name) for name in beside),
        *([Column("normalised", title="0 is random play, 100 the expert")] if normalised else []),
        *(Column(name) for name in others),
    ]
    lines = []
    for place, (label, estimate) in enumerate(estimates.items()):
        cells = [Cell(tag("span", label.removeprefix("turngym/"), class_="who"), label.lower())]
        if families:
            cells.append(Cell(tag("span", families.get(label, UNKNOWN), class_="date"), families.get(label)))
        cells.append(estimate_cell(estimate, axis, scale, digits))
        cells += [Cell(figure(scale * found[label], digits), found[label]) for found in beside.values()]
        if normalised:
            mine = normalised.get(label)
            cells.append(Cell(UNKNOWN) if mine is None else Cell(figure(mine.value), mine.value))
        cells += [Cell(figure(*numbers[label]), numbers[label][0]) for numbers in others.values()]
        lines.append(Line(f"e{place}", cells, label))
    caption = f"{counted(len(lines), 'environment')}, {counted(entry.episodes, 'episode')}. Lines are 95 % intervals."
    return sortable_table(caption, columns, lines)


def _other_numbers(entry: Entry) -> dict[str, dict[str, tuple[float, int]]]:
    """Return name of a column -> label -> number and digits after its point; columns that say nothing are left out."""
    results = entry.results
    found = {
        "score": {label: (result.score.value, 3) for label, result in results.items()},
        "turns": {label: (result.turns.value, 1) for label, result in results.items()},
        "invalid %": {label: (100 * result.invalid_actions, 1) for label, result in results.items()},
    }
    if entry.faults:
        found["faults"] = {label: (result.faults, 0) for label, result in results.items()}
    if entry.context:
        found["prompt too long"] = {label: (result.context, 0) for label, result in results.items()}
    if len({len(result.episodes) for result in results.values()}) > 1:
        found["episodes"] = {label: (len(result.episodes), 0) for label, result in results.items()}
    return found


def _faults(entry: Entry) -> Html:
    broken = [each for each in entry.submission.episodes if each["fault"]]
    if not broken:
        return Html()
    shown = [
        tag("li", f"{each['label']}, task {each['task']}, attempt {each['attempt']}: ", tag("code", each["fault"]))
        for each in broken[:_SHOWN_FAULTS]
    ]
    return tag("section", tag("h2", "Faults"), tag("p", f"{counted(len(broken), 'episode')} broke."), tag("ul", *shown))


def write_evaluation_page(folder: Path, target: Path) -> None:
    """Write the page of the evaluation in a folder.

    Raises:
        ConfigError: The folder holds no evaluation with an episode of each environment.
    """
    entry = read_entry(folder)
    if isinstance(entry, LeftOut):
        raise ConfigError(f"{folder} cannot be shown: {entry.reason}")
    write_atomic(target, evaluation_page(entry))
