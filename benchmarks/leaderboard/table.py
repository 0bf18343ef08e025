"""The tables of a leaderboard.

A table holds submissions that played the same tasks under the same rules, and no others. A rank is a range:
submissions whose intervals overlap may be equally good.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from turngym.agents.intervals import Estimate
from turngym.agents.recordings.submission import key_of
from turngym.benchmarks.leaderboard.entries import Entry, LeftOut, scale, tasks_digest
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.benchmarks.statistics.normalised import normalised
from turngym.benchmarks.suites import SUITES

SCHEMA = 1
"""Version of what :meth:`Leaderboard.as_json` gives."""
UNKNOWN_OF_LOGS = ("revision of the model", "settings", "rules", "split", "date", "time")
"""Facts that a log of another suite does not show."""
_MANY, _MOST_FACTS = 10, 4

Ranks = tuple[int, int]


@dataclass(frozen=True)
class Group:
    """Submissions that can be compared, the best first, those that are not complete last.

    Args:
        suite: Name of the suite.
        version: Its version.
        digest: Short hash of tasks and rules.
        rows: The submissions.
        ranks: The best and the worst place of each that its interval allows; None for one that is not complete.
        scale: Label -> what counts as 0 and as 100 in normalised numbers.
        families: Family -> labels; empty where the suite has no families.
        copies: Folder -> other folders with the same actions in most episodes, and in how many.
    """

    suite: str
    version: int
    digest: str
    entries: tuple[Entry, ...]
    ranks: tuple[Ranks | None, ...]
    scale: Mapping[str, tuple[float, float]]
    families: Mapping[str, tuple[str, ...]]
    copies: Mapping[Path, Mapping[Path, int]]

    @property
    def metric(self) -> str:
        """Metric."""
        return self.entries[0].metric

    @property
    def protocol(self) -> str:
        """Further requirements on an agent."""
        return str(self.entries[0].submission.config["suite"]["protocol"])

    @property
    def labels(self) -> tuple[str, ...]:
        """The environments."""
        return tuple(self.entries[0].results)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return sum(len(each["seeds"]) for each in self.entries[0].submission.config["environments"])

    def normalised(self, entry: Entry) -> dict[str, Estimate]:
        """Return label -> normalised number, for the environments that have a scale."""
        return {
            label: normalised(getattr(entry.results[label], self.metric), *ends) for label, ends in self.scale.items()
        }

    def normalised_mean(self, entry: Entry) -> Estimate | None:
        """Return the mean of the normalised numbers with equal weights; None without a scale."""
        found = self.normalised(entry)
        return equal_weight_mean(list(found.values())) if found else None

    def normalised_middle(self, entry: Entry) -> float | None:
        """Return the interquartile mean of the normalised numbers; None for ten environments or fewer."""
        values = [estimate.value for estimate in self.normalised(entry).values()]
        return interquartile_mean(values) if len(values) > _MANY else None


@dataclass(frozen=True)
class Leaderboard:
    """Tables, and the folders that are in none.

    Args:
        groups: The tables.
        left_out: Folders with the reasons why they are in no table.
    """

    groups: tuple[Group, ...]
    left_out: tuple[LeftOut, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        left_out = [
            {"folder": str(each.folder), "reason": each.reason, "findings": list(each.findings)}
            for each in self.left_out
        ]
        return {"version": SCHEMA, "tables": [_group_json(group) for group in self.groups], "left_out": left_out}


def build_leaderboard(entries: Iterable[Entry], left_out: Iterable[LeftOut] = ()) -> Leaderboard:
    """Return the tables of all submissions: one for each suite, version and set of tasks and rules.

    Logs of other suites are in no table with submissions, and share one where the names of all tasks are the same.
    """
    parted: dict[tuple[str, int, str, bool, str], list[Entry]] = {}
    for entry in entries:
        suite = entry.submission.config["suite"]
        key = suite["name"], -suite["version"], suite["metric"], entry.is_log, tasks_digest(entry.submission)
        parted.setdefault(key, []).append(entry)
    ordered = sorted(parted.items(), key=lambda item: (item[0][:4], -len(item[1]), item[0][4]))
    return Leaderboard(tuple(group_of(members, key[4]) for key, members in ordered), tuple(left_out))


def distinctions(groups: Sequence[Group]) -> list[str]:
    """Return for each table what tells it from the others of its suite and version, after its own options.

    Empty for a table that is alone and has no options other than the suite's.
    """
    facts = [_facts(group) for group in groups]
    found = []
    for group, mine in zip(groups, facts, strict=True):
        others = [
            theirs
            for other, theirs in zip(groups, facts, strict=True)
            if other is not group and (other.suite, other.version) == (group.suite, group.version)
        ]
        own = _own_options(group)
        told = [
            f"{name} {value}"
            for name, value in mine.items()
            if name in own or any(each.get(name) != value for each in others)
        ]
        missing = dict.fromkeys(name for each in others for name in each if name not in mine)
        words = [*told[:_MOST_FACTS], *(["..."] if len(told) > _MOST_FACTS else [])]
        found.append(", ".join(words or [f"without {name}" for name in list(missing)[:_MOST_FACTS]]))
    return found


def _own_options(group: Group) -> set[str]:
    """Return the names of the options that were passed to a single environment; a suite has its own."""
    config = group.entries[0].submission.config
    if config["suite"]["version"] or len(config["environments"]) > 1:
        return set()
    (only,) = config["environments"]
    return {name for name, value in only["options"].items() if (name, value) != ("split", "test")} | {"wrappers"}


def _facts(group: Group) -> dict[str, str]:
    """Return what makes submissions comparable, by name: options, wrappers, rules, tasks, metric and protocol."""
    config = group.entries[0].submission.config
    is_log = group.entries[0].is_log
    found = {"metric": group.metric, **({"read from": "logs"} if is_log else {})}
    for each in config["environments"]:
        place = "" if len(config["environments"]) == 1 else f"{each['label']} "
        found |= {f"{place}{name}": json.dumps(value) for name, value in sorted(each["options"].items())}
        if each["wrappers"]:
            found[f"{place}wrappers"] = " ".join(map(str, each["wrappers"]))
        found[f"{place}tasks"] = str(len(each["seeds"]))
        if each["seeds"] and not is_log:
            found[f"{place}tasks"] += f" from seed {each['seeds'][0]}"
            found[f"{place}rules"] = each["ruleset_hash"][:8]
    return {**found, "protocol": repr(group.protocol[:60]), "tasks and rules": group.digest}


def group_of(entries: Sequence[Entry], digest: str) -> Group:
    """Return a table of submissions that played the same tasks."""
    ordered = sorted(
        entries, key=lambda entry: (not entry.is_complete, -entry.mean.value, entry.name, str(entry.folder))
    )
    suite = ordered[0].submission.config["suite"]
    complete = [entry for entry in ordered if entry.is_complete]
    ranks = rank_ranges([ends_of(entry.mean) for entry in complete])
    return Group(
        suite["name"],
        suite["version"],
        digest,
        tuple(ordered),
        (*ranks, *[None] * (len(ordered) - len(complete))),
        scale(ordered),
        _families(suite["name"], tuple(ordered[0].results)),
        copies(ordered),
    )


def copies(entries: Sequence[Entry]) -> dict[Path, dict[Path, int]]:
    """Return folder -> folders of which more than half of the episodes have the same actions, and how many have.

    They may be copies, or of one agent that plays the same game each time. Which one came first, no file can prove.
    """
    played = {entry.folder: {(*key_of(row), *row["actions"]) for row in entry.submission.episodes} for entry in entries}
    found: dict[Path, dict[Path, int]] = {folder: {} for folder in played}
    for one, other in combinations(played, 2):
        same = len(played[one] & played[other])
        if 2 * same > min(len(played[one]), len(played[other])):
            found[one][other] = found[other][one] = same
    return found


def _families(suite: str, labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    known = SUITES[suite].families if suite in SUITES else {}
    found = {family: tuple(label for label in members if label in labels) for family, members in known.items()}
    return {family: members for family, members in found.items() if members}


def ends_of(estimate: Estimate) -> tuple[float, float]:
    """Return the ends of an interval; if there is none, every value is possible.

    >>> ends_of(Estimate(0.5, 0.0, 0.5, 0.5, 40, 40, "cluster bootstrap"))
    (-inf, inf)
    """
    return (estimate.low, estimate.high) if estimate.has_interval else (-math.inf, math.inf)


def rank_ranges(intervals: Sequence[tuple[float, float]]) -> list[Ranks]:
    """Return for each interval the best and the worst place that it allows, the highest being the first.

    Somebody is surely ahead only if the whole interval is above. Two that overlap may stand in either order, which is
    careful: the same tasks told apart one by one, as ``turngym compare`` does, separate more.

    >>> rank_ranges([(0.8, 0.9), (0.5, 0.7), (0.6, 0.75), (0.1, 0.2)])
    [(1, 1), (2, 3), (2, 3), (4, 4)]
    """
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    return [
        (1 + sum(other > high for other in lows), len(intervals) - sum(other < low for other in highs))
        for low, high in intervals
    ]


def interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean of the middle half of the values: a quarter of their number is left out at each end.

    >>> interquartile_mean([0.0, 1.0, 2.0, 3.0, 100.0, 3.0, 2.0, 1.0])
    2.0
    """
    ordered, cut = sorted(values), len(values) / 4
    whole = math.floor(cut)
    weights = [1.0] * len(ordered)
    for side in (range(whole), range(len(ordered) - whole, len(ordered))):
        for index in side:
            weights[index] = 0.0
    for index in (whole, len(ordered) - 1 - whole):  # of these two a part is left out
        weights[index] -= cut - whole
    return sum(weight * value for weight, value in zip(weights, ordered, strict=True)) / sum(weights)


def _group_json(group: Group) -> dict[str, Any]:
    entries = [_entry_json(group, entry, ranks) for entry, ranks in zip(group.entries, group.ranks, strict=True)]
    return {
        "suite": group.suite,
        "version": group.version,
        "metric": group.metric,
        "tasks_hash": group.digest,
        "environments": list(group.labels),
        "families": {family: list(labels) for family, labels in group.families.items()},
        "scale": {label: {"random": low, "expert": high} for label, (low, high) in group.scale.items()},
        "rows": entries,
    }


def _entry_json(group: Group, entry: Entry, ranks: Ranks | None) -> dict[str, Any]:
    mean, outcomes = group.normalised_mean(entry), entry.outcomes
    families = {family: _json(entry.mean_of(group.metric, labels)) for family, labels in group.families.items()}
    return {
        "folder": str(entry.folder),
        "name": entry.name,
        "ranks": None if ranks is None else list(ranks),
        "status": entry.status,
        "complete": entry.is_complete,
        "episodes": entry.episodes,
        **({"unknown": list(UNKNOWN_OF_LOGS)} if entry.is_log else {"metadata": dict(entry.submission.metadata)}),
        "mean": _json(entry.mean),
        "normalised_mean": None if mean is None else _json(mean),
        "normalised_interquartile_mean": group.normalised_middle(entry),
        "success": _json(entry.mean_of("success")),
        "turns": _json(entry.mean_of("turns")),
        **{name: _json(estimate) for name, estimate in entry.repeated.items()},
        **({"outcomes": {name: _json(estimate) for name, estimate in outcomes.items()}} if outcomes else {}),
        "invalid_actions": _finite(entry.invalid_actions),
        "faults": entry.faults,
        **({"context": entry.context} if entry.context else {}),
        "seconds": _finite(entry.seconds),
        "usage": entry.usage.as_json(),
        "families": families,
        "environments": {label: _json(estimate) for label, estimate in entry.estimates(group.metric).items()},
        "not_recomputed": {} if entry.verification is None else dict(entry.verification.not_recomputed),
        "same_episodes": {str(folder): count for folder, count in group.copies[entry.folder].items()},
    }


def _json(estimate: Estimate) -> dict[str, Any]:
    low, high = ends_of(estimate)
    return {
        "value": _finite(estimate.value),
        "ci_low": _finite(low),
        "ci_high": _finite(high),
        "n_games": estimate.count,
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
