"""Leaderboard entry of one submission, computed from its episodes.

``results.json`` is not read for it: whether that follows from the episodes is what ``turngym verify`` tells.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from turngym.agents.episodes.best_of import best_of
from turngym.agents.episodes.evaluate import EvaluationResult, summarise_records
from turngym.agents.episodes.pass_k import repeated_attempts
from turngym.agents.intervals import Estimate
from turngym.agents.recordings.imports import format_of
from turngym.agents.recordings.submission import REQUIRED, Submission, in_order, key_of, load_submission, moment
from turngym.agents.usage import Usage, total
from turngym.benchmarks.evaluation.imported import as_folder
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.benchmarks.statistics.normalised import HIGH, LOW
from turngym.benchmarks.verification.verify import Verification
from turngym.errors import TurngymError
from turngym.types import StrPath

_DIGITS = 8


@dataclass(frozen=True)
class Entry:
    """A submission.

    Args:
        folder: Path.
        submission: Contents of the folder.
        results: Label -> numbers of that environment.
        usage: Total usage of the agent over all episodes.
        repeated: ``pass@k``, ``pass^k``, and ``chosen_of_N`` and its like where a verifier chose, with equal weights.
        is_complete: Whether every task has as many episodes as were asked for.
        verification: Result of the verification; None if it was not verified.
        is_log: Whether it was read from a log of another suite, which nothing can check.
    """

    folder: Path
    submission: Submission
    results: Mapping[str, EvaluationResult]
    usage: Usage
    repeated: Mapping[str, Estimate]
    is_complete: bool
    verification: Verification | None = None
    is_log: bool = False

    @property
    def name(self) -> str:
        """Label of the submission."""
        return str(self.submission.metadata["name"])

    @property
    def metric(self) -> str:
        """Metric of its suite."""
        return str(self.submission.config["suite"]["metric"])

    @property
    def mean(self) -> Estimate:
        """The suite's number: the mean of its metric over the environments with equal weights."""
        return self.mean_of(self.metric)

    @property
    def status(self) -> str:
        """Verification label: ``log``, ``not checked``, ``self-reported`` or ``replayed``."""
        if self.is_log:
            return "log"
        return "not checked" if self.verification is None else self.verification.label

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return sum(len(result.episodes) for result in self.results.values())

    @property
    def invalid_actions(self) -> float:
        """Share of the actions that were invalid; nan without any action."""
        turns = sum(row["length"] for row in self.submission.episodes)
        return sum(row["illegal"] for row in self.submission.episodes) / turns if turns else math.nan

    @property
    def faults(self) -> int:
        """Episodes in which the environment broke."""
        return sum(result.faults for result in self.results.values())

    @property
    def context(self) -> int:
        """Episodes whose next prompt did not fit the model's context."""
        return sum(result.context for result in self.results.values())

    @property
    def seconds(self) -> float:
        """Time from the first episode of the agent to its last as reported, baselines left out; nan for logs."""
        if self.is_log:
            return math.nan
        told = self.submission.metadata
        begin, end = moment(told["started"]), moment(told.get("played", told["finished"]))
        assert begin is not None and end is not None  # as it was loaded
        return (end - begin).total_seconds()

    def estimates(self, metric: str, labels: Iterable[str] | None = None) -> dict[str, Estimate]:
        """Return label -> estimate of a metric."""
        chosen = self.results if labels is None else labels
        return {label: getattr(self.results[label], metric) for label in chosen}

    def mean_of(self, metric: str, labels: Iterable[str] | None = None) -> Estimate:
        """Return the mean of a metric with equal weights, over all environments or some."""
        return equal_weight_mean(list(self.estimates(metric, labels).values()))

    @property
    def outcomes(self) -> dict[str, Estimate]:
        """Outcomes that environments declare, by name: means with equal weights over the environments that have it."""
        names = dict.fromkeys(name for result in self.results.values() for name in result.outcomes)
        told = self.results.values()
        return {
            name: equal_weight_mean([each.outcomes[name] for each in told if name in each.outcomes]) for name in names
        }


@dataclass(frozen=True)
class LeftOut:
    """A folder that is in no table.

    Args:
        folder: The folder.
        reason: Why, in a sentence.
        findings: Names of what is wrong with it, if it was rejected.
    """

    folder: Path
    reason: str
    findings: tuple[str, ...] = ()


def read_entries(
    paths: Iterable[StrPath],
    check: Callable[[Path], Verification] | None = None,
    on_folder: Callable[[Path], None] | None = None,
) -> tuple[list[Entry], list[LeftOut]]:
    """Return the submissions, and the folders that hold none that can be shown.

    Args:
        paths: Folders of submissions, logs of other suites, or folders of such.
        check: Checks a submission; those that it rejects are left out. None checks nothing. Logs are never checked.
        on_folder: Called with each folder before it is read.
    """
    entries, left_out = [], []
    for folder in expand(map(Path, paths)):
        if on_folder is not None:
            on_folder(folder)
        try:
            found = read_entry(folder, check)
        except TurngymError as error:
            found = LeftOut(folder, str(error))
        except Exception as error:  # untrusted folders: none of them stops the page
            found = LeftOut(folder, f"it cannot be read: {error!r}"[:500])
        if isinstance(found, Entry):
            entries.append(found)
        else:
            left_out.append(found)
    return entries, left_out


def expand(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each folder once; one that is no submission but holds some stands for those."""
    seen = set()
    for path in paths:
        try:
            inner = [] if _is_like_one(path) or not path.is_dir() else sorted(filter(_is_like_one, path.iterdir()))
        except OSError:  # what cannot be looked into is read, and left out with the reason
            inner = []
        for folder in inner or [path]:
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                yield folder


def _is_like_one(path: Path) -> bool:
    return any((path / name).is_file() for name in REQUIRED) or _is_like_log(path)


def _is_like_log(path: Path) -> bool:
    try:
        return not path.is_symlink() and bool(format_of(path))
    except TurngymError:  # it is read, and left out with the reason
        return True


def read_entry(folder: Path, check: Callable[[Path], Verification] | None = None) -> Entry | LeftOut:
    """Return a submission, or why it is left out.

    Raises:
        TurngymError: There is no such folder, it has not the right shape, or it is one of another kind.
    """
    with as_folder(folder) as own:
        submission, is_log = replace(load_submission(own), path=folder), own != folder
    rows = {each["label"]: submission.of(each["label"]) for each in submission.config["environments"]}
    empty = [label for label, found in rows.items() if not found]
    if empty:
        return LeftOut(folder, f"it has no episode of {empty[0]}: the evaluation was not finished.")
    if any("state" in row for row in submission.episodes):
        return LeftOut(folder, "its episodes continue recorded ones: no result for a leaderboard.")
    usage = total(Usage.from_json(seat) for row in submission.episodes for seat in row["seats"].values())
    if usage.is_unanswered:
        return LeftOut(folder, "the agent answered no turn, so there is no score.")
    verification = None if check is None or is_log else check(folder)
    if verification is not None and not verification.is_accepted:
        names = tuple(dict.fromkeys(finding.name for finding in verification.findings))
        return LeftOut(folder, f"it was rejected: `turngym verify {folder}` shows the reason.", names)
    environments = {each["label"]: each["env"] for each in submission.config["environments"]}
    results = {label: summarise_records(environments[label], found) for label, found in rows.items()}
    return Entry(
        folder,
        submission,
        results,
        usage,
        repeated(list(results.values())),
        is_complete(submission, submission.episodes),
        verification,
        is_log,
    )


def repeated(results: Sequence[EvaluationResult]) -> dict[str, Estimate]:
    """Return what repeated attempts show, with equal weights, where every environment has such."""
    found = [{**repeated_attempts(result.episodes), **best_of(result.episodes)} for result in results]
    names = [name for name in found[0] if all(name in each for each in found)]
    return {name: equal_weight_mean([each[name] for each in found]) for name in names}


def is_complete(submission: Submission, episodes: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether there is one episode for each attempt at each task, and no other."""
    config = submission.config
    wanted = [
        (each["label"], task, attempt)
        for each in config["environments"]
        for task in range(len(each["seeds"]))
        for attempt in range(config["repeats"])
    ]
    return sorted(map(key_of, episodes)) == sorted(wanted)


def baseline(entry: Entry, player: str) -> dict[str, float] | None:
    """Return label -> mean of the suite's metric of a baseline on the same tasks; None if there is none.

    Args:
        entry: The submission.
        player: ``random`` or ``expert``.
    """
    episodes = entry.submission.baselines.get(player, ())
    if not episodes or not is_complete(entry.submission, episodes):
        return None
    means = {label: [float(each[entry.metric]) for each in in_order(episodes, label)] for label in entry.results}
    return {label: sum(values) / len(values) for label, values in means.items()}


def scale(entries: Sequence[Entry]) -> dict[str, tuple[float, float]]:
    """Return label -> what counts as 0 and as 100: the means of random play and of the expert over the submissions.

    Of submissions that were checked only those count whose baselines the check played itself: what others call their
    baselines would move the numbers of all. Environments in which the expert is no better than random play have none.
    """
    floors, tops = (
        [found for entry in entries if _counts(entry, player) and (found := baseline(entry, player)) is not None]
        for player in (LOW, HIGH)
    )
    if not floors or not tops:
        return {}
    ends: dict[str, tuple[float, float]] = {}
    for label in entries[0].results:
        low, high = (sum(each[label] for each in found) / len(found) for found in (floors, tops))
        if high > low:
            ends[label] = low, high
    return ends


def _counts(entry: Entry, player: str) -> bool:
    """Return whether a baseline was played by the check, or nothing was checked."""
    if entry.verification is None:
        return True
    is_played = "normalised_mean" not in entry.verification.not_recomputed
    return is_played and player in entry.submission.results.get("baselines", {})


def tasks_digest(submission: Submission) -> str:
    """Return a short hash of what is played: environments, options, wrappers, rules and seeds."""
    keys = ("label", "env", "options", "wrappers", "ruleset_hash", "seeds")
    content = [[each[key] for key in keys] for each in submission.config["environments"]]
    content.append(submission.config["suite"]["protocol"])
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:_DIGITS]
