"""Metrics of asynchronous rollouts, and a warning about methods that treat stale samples as fresh."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms.base.clipped import RATIOS, PolicyMethod
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.loop.asynchronous.player import Player, Stage
from turngym.trainers.loop.asynchronous.pool import Group
from turngym.trainers.settings.config import TrainConfig

_BUCKETS = 4


class RolloutMeter:
    """Measures staleness, dropped groups and waiting times of iterations.

    Args:
        staleness: Maximum iterations of rollouts ahead of the learner.
    """

    def __init__(self, staleness: int) -> None:
        self.staleness = staleness
        self._tokens: Counter[int] = Counter()
        self._dropped: list[Trajectory] = []
        self._dropped_groups = 0
        self._stage: Stage | None = None
        self._player: Player | None = None
        self._waited = self._idle = self._written = 0.0
        self._gathered = (0.0, 0.0)
        self._overlap = 0.0

    def begin(self, stage: Stage, player: Player) -> None:
        """Start the measurement of a run."""
        self._stage, self._player = stage, player

    def gathered(self, episodes: Sequence[Trajectory], iteration: int) -> None:
        """Count the tokens of a batch by the age of their weights."""
        for turn in (turn for episode in episodes for turn in episode.turns):
            if turn.policy_version >= 0:
                self._tokens[min(iteration - turn.policy_version, _BUCKETS)] += len(turn.completion_ids)
        assert self._player is not None
        self._gathered = time.perf_counter(), self._player.idle_seconds()

    def dropped(self, groups: Sequence[Group]) -> None:
        """Count dropped groups."""
        self._dropped_groups += len(groups)
        self._dropped += [episode for group in groups for episode in group.episodes]

    def trained(self) -> None:
        """Record the end of a batch's update, and its overlap with rollouts."""
        assert self._player is not None
        began, idle = self._gathered
        seconds = max(time.perf_counter() - began, 1e-9)
        self._overlap = min(max(1.0 - (self._player.idle_seconds() - idle) / seconds, 0.0), 1.0)

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        assert self._stage is not None and self._player is not None
        total = max(sum(self._tokens.values()), 1)
        found = {f"policy/staleness_{age}": self._tokens[age] / total for age in range(_BUCKETS)}
        found[f"policy/staleness_{_BUCKETS}_up"] = self._tokens[_BUCKETS] / total
        lengths = [len(episode.turns) for episode in self._dropped]
        found["rollout/dropped_groups"] = float(self._dropped_groups)
        found["rollout/dropped_turns"] = sum(lengths) / max(len(lengths), 1)
        found["rollout/dropped_turns_max"] = float(max(lengths, default=0))
        found["rollout/restored"] = float(self._player.restored)
        found["rollout/replayed"] = float(self._player.replayed)
        self._player.restored = self._player.replayed = 0
        waited, idle, written = self._stage.pool.waited, self._player.idle_seconds(), self._stage.journal.seconds
        found["time/learner_wait_seconds"] = waited - self._waited
        found["time/player_wait_seconds"] = idle - self._idle
        found["time/journal_seconds"] = written - self._written
        found["time/overlap"] = self._overlap
        self._waited, self._idle, self._written = waited, idle, written
        self._tokens.clear()
        self._dropped, self._dropped_groups = [], 0
        return found


def correction_warning(config: TrainConfig, algorithm: Algorithm[object]) -> str:
    """Return a warning about training a method on stale samples; empty for none.

    Clipped ratios to the sampler's log-probabilities account for samples of older weights. Ratios to the trainer's, or
    no ratios, need a correction.
    """
    is_corrected = Need.TRAINER_LOGPROBS in algorithm.needs or (
        isinstance(algorithm, PolicyMethod) and algorithm.weighs_sampler
    )
    if not config.rollout.staleness or is_corrected:
        return ""
    if config.update.old_logprobs == "trainer":
        return (
            "samples may be written by older weights, and --update.old-logprobs trainer takes ratios against those of "
            f"now, as if they were fresh: take --algorithm {config.algorithm}+tis, or leave that option out."
        )
    if isinstance(algorithm, PolicyMethod) and not _has_ratio(algorithm):
        return (
            f"samples may be written by older weights, and {config.algorithm} has no ratio against these: take "
            f"--algorithm {config.algorithm}+tis, or --rollout.max-staleness 0."
        )
    return ""


def _has_ratio(algorithm: PolicyMethod[Any]) -> bool:
    try:
        algorithm.with_ratio(RATIOS["token"])
    except ConfigError:
        return False
    return True
