"""The page of one evaluation: its numbers by environment, with those of the baselines."""

from __future__ import annotations

from pathlib import Path

from turngym.benchmarks.leaderboard.entries import Entry, LeftOut, baseline, read_entry, tasks_digest
from turngym.benchmarks.leaderboard.table import Group, group_of
from turngym.benchmarks.pages.leaderboard import metric_name
from turngym.benchmarks.pages.submission import about
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
    interval_text,
    page,
)
from turngym.benchmarks.statistics.normalised import HIGH, LOW
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.trainers.core.wording import UNKNOWN, counted


def _evaluation_page(entry: Entry) -> str:
    """Return the page of a submission; nothing of it is checked."""
    group = group_of([entry], tasks_digest(entry.submission))
    suite = f"{group.suite}, version {group.version}" if group.version else group.suite
    subtitle = f"{entry.name} on {suite}: {counted(entry.episodes, 'episode')}, {entry.submission.metadata['date']}."
    return page(
        f"Evaluation: {entry.name}",
        "evaluation.html",
        subtitle,
        headline=_headline(group, entry),
        is_complete=entry.is_complete,
        table=_environments_table(group, entry),
        families=_families(group, entry),
        outcomes=_outcomes_table(entry),
        about=about(group, entry, "about"),
        rules=group.protocol,
        faults=[each for each in entry.submission.episodes if each["fault"]],
    )


def _headline(group: Group, entry: Entry) -> str:
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
    return "".join(words) + "."


def _families(group: Group, entry: Entry) -> Facet | None:
    if len(group.families) < 2:
        return None
    shares = group.metric == "success"
    means = {family: entry.mean_of(group.metric, labels) for family, labels in group.families.items()}
    axis = Axis(0, 1) if shares else axis_around(list(means.values()), 0, 0.001)
    entries = [(f"f{place}", family, mean) for place, (family, mean) in enumerate(means.items())]
    scale, digits = (100, 1) if shares else (1, 3)
    return facet(f"{metric_name(group.metric).capitalize()} by family", entries, axis, scale, digits)


def _environments_table(group: Group, entry: Entry) -> Table:
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
        cells = [Cell(label.removeprefix("turngym/"), label.lower(), "who")]
        if families:
            cells.append(Cell(families.get(label, UNKNOWN), families.get(label), "date"))
        cells.append(estimate_cell(estimate, axis, scale, digits))
        cells += [Cell(figure(scale * found[label], digits), found[label]) for found in beside.values()]
        if normalised:
            mine = normalised.get(label)
            cells.append(Cell(UNKNOWN) if mine is None else Cell(figure(mine.value), mine.value))
        cells += [Cell(figure(*numbers[label]), numbers[label][0]) for numbers in others.values()]
        lines.append(Line(f"e{place}", cells, label))
    caption = f"{counted(len(lines), 'environment')}, {counted(entry.episodes, 'episode')}. Lines are 95 % intervals."
    return Table(caption, columns, lines)


def _outcomes_table(entry: Entry) -> Table | None:
    """Return a row for each outcome of each environment; None if environments declare none."""
    told = [(label, name, each) for label, found in entry.results.items() for name, each in found.outcomes.items()]
    if not told:
        return None
    axis = axis_around([each for *_, each in told], 0, 1)
    columns = [
        Column("environment", "ascending", is_number=False),
        Column("outcome", "ascending", is_number=False),
        Column("mean", is_number=False),
    ]
    lines = [
        Line(
            f"o{place}",
            [
                Cell(label.removeprefix("turngym/"), label.lower(), "who"),
                Cell(name, name.lower()),
                estimate_cell(estimate, axis, 1, 3),
            ],
            label,
        )
        for place, (label, name, estimate) in enumerate(told)
    ]
    return Table("Means over episodes at their ends, as the environments define them.", columns, lines)


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


def write_evaluation_page(folder: Path, target: Path) -> None:
    """Write the page of the evaluation in a folder.

    Raises:
        ConfigError: The folder holds no evaluation with an episode of each environment.
    """
    entry = read_entry(folder)
    if isinstance(entry, LeftOut):
        raise ConfigError(f"{folder} cannot be shown: {entry.reason}")
    write_atomic(target, _evaluation_page(entry))
