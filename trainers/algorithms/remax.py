"""ReMax: the return less that of the greedy policy on the same instance (Li et al. 2023, arXiv 2310.10505).

Each instance is played once more with the likeliest token always. Those episodes are counted as turns of the run, and
not trained on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithm import Credit, Rollout
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.clipped import ClippedConfig, ClippedMethod
from turngym.trainers.columns import with_columns
from turngym.trainers.turn_table import TurnTable


@dataclass(frozen=True)
class ReMaxConfig(ClippedConfig):
    """Settings of ReMax."""


@ALGORITHMS.register("remax")
class ReMax(ClippedMethod[ReMaxConfig]):
    """Policy gradient with the greedy policy's return as baseline."""

    Config: ClassVar[type[ReMaxConfig]] = ReMaxConfig

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the episodes of the iteration, each with the return of the greedy one on its instance."""
        sampled, greedy = rollout(), rollout(greedy=True)
        baselines = {_who(episode): episode.reward_sum for episode in greedy if not episode.fault}
        return [with_columns(episode, {"greedy_return": baselines.get(_who(episode), math.nan)}) for episode in sampled]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the greedy one; 0, and counted, where that is not known."""
        baselines = table.numbers("episode", "greedy_return").to(table.reward.dtype)
        unknown = baselines.isnan()
        compared = (table.episode_return() - baselines.nan_to_num())[table.episode]
        advantages = compared - table.invalid_penalties(self.config.invalid_penalty)
        metrics = {
            "episodes_without_baseline": float(unknown.sum()),
            "greedy_return": float(baselines[~unknown].mean()) if not bool(unknown.all()) else 0.0,
        }
        return Credit(table.to_tokens(advantages.masked_fill(unknown[table.episode], 0.0)), metrics=metrics)


def _who(episode: Trajectory) -> tuple[int, int, str]:
    """Return what an episode has in common with the greedy one that it is compared with: instance and seat."""
    seats = sorted({turn.agent for turn in episode.turns})
    return episode.spec.group, episode.spec.seed, ",".join(seats) or episode.role
