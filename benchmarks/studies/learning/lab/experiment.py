"""What an experiment of the laboratory declares, before anything has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from lab.runs import Method, Setting

RATES = (0.03, 0.1, 0.3)
PILOT_SEEDS = tuple(range(1000, 1008))
LEAST_SEEDS, MOST_SEEDS = 20, 200
WANTED_POWER = 0.9


@dataclass(frozen=True)
class Arm:
    """One side of a comparison.

    Args:
        method: The method with what differs from its page.
        acts: Metric -> least mean over a run at which the thing under test has acted, for the tables.
        level_free: Whether the level changes nothing for it, so that it runs once for all levels.
        changes: Fields of the world that are its own, such as rewards.
        group_size: Episodes that a group begins with, where it adds the others itself; 0 for those of the level.
        own: Fields of the setting that are its own: ``critic_rate`` where its critic is another network than those of
            the others, ``imitation`` where that is under test.
    """

    method: Method
    acts: Mapping[str, float] = field(default_factory=dict)
    level_free: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    group_size: int = 0
    own: Mapping[str, float] = field(default_factory=dict)

    def setting(self, level: Setting) -> Setting:
        """Return the setting of a level as this arm runs it."""
        play = replace(level.play, group_size=self.group_size or level.play.group_size)
        world = replace(cast("Any", level.world), **self.changes)
        return replace(level, world=world, play=play, **cast("Any", self.own))


@dataclass(frozen=True)
class Contrast:
    """Which arm is claimed to beat which.

    Args:
        better: The arm that is claimed to be better.
        worse: The other one.
        claimed_at: The levels at which the paper claims it; the others show how it changes.
        outcome: What is compared: ``final`` success (mean of the last three evaluations), the ``mean`` over the run, or
            ``kept``, 1 for a run that did not collapse.
        effect: Smallest difference that matters; 0 for that of the experiment.
        primary: Whether it sets the number of seeds and the verdict on the claim; others are shown beside it.
    """

    better: str
    worse: str
    claimed_at: tuple[str, ...]
    outcome: Literal["final", "mean", "kept"] = "final"
    effect: float = 0.0
    primary: bool = True

    @property
    def title(self) -> str:
        """Its name in results."""
        return f"{self.better} > {self.worse} ({self.outcome})"


@dataclass(frozen=True)
class Experiment:
    """A claim, how it is tested, and what counts as an answer.

    Args:
        name: Its letter.
        claim: The claim in one sentence.
        about: How it is tested, in the form of a docstring; what follows its first line is shown.
        source: The papers.
        varied: What the levels vary.
        levels: Level -> the setting of all arms.
        arms: Name -> arm.
        contrasts: The comparisons.
        reasons: Setting as ``part.name`` -> why it differs from its method's page.
        under_test: Settings that may differ between compared arms because they are the claim.
        effect: Smallest difference that matters, which the seeds are computed for: papers claim 10 points and more.
        most_seeds: Seeds at most, for what they cost.
        rates: Step sizes; the pilot takes each arm's best.
        watched: Further metrics that tables show.
    """

    name: str
    claim: str
    source: str
    varied: str
    levels: Mapping[str, Setting]
    arms: Mapping[str, Arm]
    contrasts: Sequence[Contrast]
    reasons: Mapping[str, str] = field(default_factory=dict)
    under_test: frozenset[str] = frozenset()
    about: str | None = None
    effect: float = 0.1
    most_seeds: int = MOST_SEEDS
    rates: tuple[float, ...] = RATES
    watched: tuple[str, ...] = ()

    def level_of(self, arm: str, level: str) -> str:
        """Return the level that an arm's runs are stored under."""
        return next(iter(self.levels)) if self.arms[arm].level_free else level

    def cells(self) -> list[tuple[str, str]]:
        """Return every arm and level that runs, once each."""
        return list(dict.fromkeys((arm, self.level_of(arm, level)) for level in self.levels for arm in self.arms))

    def effect_of(self, contrast: Contrast) -> float:
        """Return the smallest difference of a contrast that matters."""
        return contrast.effect or self.effect

    def kept_metrics(self) -> set[str]:
        """Return the metrics that results keep."""
        return {name for arm in self.arms.values() for name in arm.acts} | set(self.watched)


def outcome(run: Mapping[str, Any], name: str) -> float:
    """Return the outcome of a run that a contrast compares.

    >>> outcome({"curve": [0.1, 0.8, 0.2], "final": 0.2}, "kept")
    0.0
    """
    if name == "kept":
        return float(not collapsed(run["curve"]))
    return float(run[name])


def collapsed(curve: Sequence[float]) -> bool:
    """Return whether a run lost half of its best success after it had reached 0.2.

    >>> collapsed([0.0, 0.5, 0.2]), collapsed([0.0, 0.1, 0.0]), collapsed([0.1, 0.6, 0.5])
    (True, False, False)
    """
    return max(curve) >= 0.2 and curve[-1] < max(curve) / 2
