"""SPO: one episode a task, with the task's own success rate as the baseline (single-stream, arXiv 2509.13232).

Single-stream policy optimisation has no groups. Each task keeps a Beta distribution of its success rate, in which
earlier episodes fade; an episode's advantage is its return less that rate, whitened over the batch. It needs tasks that
are played again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, within
from turngym.trainers.core.algorithm import Credit, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable

TASK = "spo_task"


@dataclass(frozen=True)
class SPOConfig(ClippedConfig):
    """Settings of single-stream policy optimisation."""

    clip_high: float = 0.28
    """Clip range above a ratio of 1."""
    prior: float = 8.0
    """Number of episodes that the first estimate of a task, one half, counts for."""
    decay: float = 0.875
    """Weight of a task's earlier episodes when it has been played again."""
    tasks: int = 10_000
    """Number of tasks that are remembered, the latest ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("prior", self.prior, 1e-6)
        within("decay", self.decay, 0, 1)
        within("tasks", self.tasks, 1)


def with_task(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with what tells its instance from others as a column."""
    spec = trajectory.spec
    name = json.dumps([trajectory.env_id, spec.seed, spec.options and dict(spec.options)], default=str, sort_keys=True)
    return with_columns(trajectory, {TASK: name})


@ALGORITHMS.register("spo")
class SPO(ClippedMethod[SPOConfig]):
    """Policy gradient with the success rate of each task as its baseline, without groups."""

    Config: ClassVar[type[SPOConfig]] = SPOConfig

    def __init__(self, config: SPOConfig) -> None:
        super().__init__(config)
        self.rates: dict[str, tuple[float, float]] = {}
        """Task -> parameters of its Beta distribution; the latest task last."""

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories, each with its task."""
        return [with_task(each) for each in rollout()]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the task's rate, whitened over the episodes."""
        names, half = table.texts("episode", TASK), self.config.prior / 2
        before = {name: self.rates.get(name, (half, half)) for name in dict.fromkeys(names)}
        rates = {name: good / max(good + bad, 1e-12) for name, (good, bad) in before.items()}
        baseline = torch.tensor([rates[name] for name in names], dtype=table.reward.dtype)
        advantages = F.standardise(table.episode_sum(self.penalised_rewards(table)) - baseline, ddof=1, epsilon=1e-8)
        solved: dict[str, list[float]] = {}
        for name, score in zip(names, table.episode_return().clamp(0, 1).tolist(), strict=True):
            solved.setdefault(name, []).append(score)
        after = {name: updated(before[name], scores, self.config.decay) for name, scores in solved.items()}
        metrics = {
            "spo_baseline": float(baseline.mean()) if len(names) else 0.0,
            "spo_known": sum(name in self.rates for name in names) / max(len(names), 1),
        }
        return Credit(table.to_tokens(advantages[table.episode]), metrics=metrics, state={"rates": after})

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the rates after the batch, and forget the tasks played longest ago."""
        for name, rate in credit.state["rates"].items():
            self.rates.pop(name, None)
            self.rates[name] = rate
        for name in list(self.rates)[: -self.config.tasks]:
            del self.rates[name]

    def state(self) -> dict[str, Any]:
        """Return the parameters of each task."""
        return {"rates": [[name, *rate] for name, rate in self.rates.items()]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the parameters of each task."""
        self.rates = {str(name): (float(good), float(bad)) for name, good, bad in state["rates"]}


def updated(rate: tuple[float, float], scores: Sequence[float], decay: float) -> tuple[float, float]:
    """Return the parameters of a task's Beta distribution after some episodes.

    Args:
        rate: The parameters before.
        scores: Returns of the episodes, in [0, 1].
        decay: Weight of what was before.

    >>> updated((4.0, 4.0), [1.0], 0.96)
    (4.84, 3.84)
    """
    solved = sum(scores)
    return decay * rate[0] + solved, decay * rate[1] + len(scores) - solved
