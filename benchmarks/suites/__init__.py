"""Suites: named lists of environments, options and seeds with a protocol and a metric.

A suite is one file of this package that registers a :class:`Suite` under its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium

from turngym.agents.episodes.evaluate import EvaluationResult, distinct_instances
from turngym.agents.intervals import Estimate
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.errors import ConfigError
from turngym.registry import Registry

Metric = Literal["success", "score"]


@dataclass(frozen=True)
class SuiteEntry:
    """The tasks of one environment.

    Args:
        env_id: The environment.
        options: Its options; the split is ``"test"`` unless given.
        episodes: Distinct instances to draw, where ``seeds`` is empty.
        seed: Seed sequence they are drawn from; the candidates are hashes of it, the same everywhere.
        seeds: The seeds of the episodes, one after another.
        takes_fewer: Whether an environment with fewer distinct instances gives those it has, instead of an error.
        wrappers: Wrappers, the first innermost, each as in ``history:k=4``.

    >>> SuiteEntry("turngym/GuessTheNumber-v0", {"high": 10}).label
    'turngym/GuessTheNumber-v0 high=10'
    """

    env_id: str
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 100
    seed: int = 0
    seeds: tuple[int, ...] = ()
    takes_fewer: bool = False
    wrappers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ConfigError(f"episodes of {self.env_id} must be at least 1, got {self.episodes}.")

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """The options of the environment, split included."""
        return {"split": "test", **self.options}

    @property
    def count(self) -> int:
        """Number of episodes; at most that many where the environment may have fewer instances."""
        return len(self.seeds) or self.episodes

    @property
    def label(self) -> str:
        """The environment with the options that differ from its own and its wrappers, as a name within the suite."""
        given = sorted(self.env_kwargs.items(), key=lambda pair: (pair[0] != "split", pair[0]))  # whatever their order
        options = [f"{key}={value}" for key, value in given if (key, value) != ("split", "test")]
        return " ".join([self.env_id, *options, *self.wrappers])

    def find_seeds(self, limit: int | None = None, backend: str = "sync") -> tuple[int, ...]:
        """Return the seeds of the episodes, at most ``limit`` of them: a shorter run plays the first ones.

        Raises:
            ConfigError: The environment does not have that many distinct instances, or an option is wrong.
        """
        if self.seeds:
            return self.seeds[:limit]
        count = self.episodes if limit is None else min(limit, self.episodes)
        found = distinct_instances(self.env_id, count, self.env_kwargs, self.seed, self.takes_fewer, backend)
        return tuple(found.values())

    def has_more_than(self, count: int, backend: str = "sync") -> bool:
        """Return whether more than ``count`` distinct instances of the environment are found."""
        return len(distinct_instances(self.env_id, count + 1, self.env_kwargs, self.seed, True, backend)) > count


@dataclass(frozen=True)
class Suite:
    """A named list of tasks.

    Args:
        name: Name of the suite.
        version: Counts up with every change that makes results differ.
        description: One sentence.
        entries: The environments.
        metric: Metric: the share of solved tasks, or the benchmark's number.
        protocol: Further requirements on an agent for comparable results.
        families: Family -> labels of its entries, for pages that show results by family.
    """

    name: str
    version: int
    description: str
    entries: tuple[SuiteEntry, ...]
    metric: Metric = "success"
    protocol: str = ""
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = [entry.label for entry in self.entries]
        if not labels or len(set(labels)) < len(labels):
            raise ConfigError(f"the suite {self.name!r} needs entries that differ in environment or options: {labels}.")
        unknown = [label for members in self.families.values() for label in members if label not in labels]
        if unknown:
            raise ConfigError(f"the families of the suite {self.name!r} name {unknown}, which it has not: {labels}.")
        if self.metric not in ("success", "score"):
            raise ConfigError(f"the metric of a suite is success or score, got {self.metric!r}.")


def single_suite(
    env_id: str,
    options: Mapping[str, Any],
    wrappers: tuple[str, ...] = (),
    episodes: int | None = None,
    seed: int = 0,
) -> Suite:
    """Return a suite of one environment.

    Args:
        env_id: The environment.
        options: Its options.
        wrappers: Put around it, the first innermost.
        episodes: Distinct instances to draw; up to 100 unless given.
        seed: Seed sequence they are drawn from.
    """
    takes_fewer = episodes is None
    entry = SuiteEntry(env_id, options, episodes or 100, seed, takes_fewer=takes_fewer, wrappers=wrappers)
    return Suite(env_id, 0, "One environment.", (entry,))


SUITES: Registry[Suite] = Registry("suite", "turngym.benchmarks.suites")


def find_suite(target: str) -> Suite | None:
    """Return the suite of that name; None where the name is that of an environment, or unknown."""
    return None if target in gymnasium.registry or target not in SUITES else SUITES[target]


@dataclass(frozen=True)
class SuiteResult:
    """Result of the evaluation of a suite.

    Args:
        suite: The suite.
        results: One result an entry, in order.
    """

    suite: Suite
    results: tuple[EvaluationResult, ...]

    @property
    def mean(self) -> Estimate:
        """The suite's number: the mean of its metric with equal weight for each entry."""
        return equal_weight_mean([getattr(result, self.suite.metric) for result in self.results])
