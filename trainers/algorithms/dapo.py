"""DAPO: GRPO with a wider upper clip, dynamic sampling and a penalty for overlong answers (arXiv 2503.14476).

Groups whose episodes all return the same teach nothing. They are dropped, and fresh instances are played until there
are as many groups as were asked for, or the rounds are used up; every turn so played counts as a turn of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Rollout
from turngym.trainers.core.columns import counts_of, with_counts
from turngym.trainers.core.turn_table import TurnTable, usable


@dataclass(frozen=True)
class DAPOConfig(GroupConfig):
    """Settings of DAPO."""

    keeps: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    clip_high: float = 0.28
    """Width of the clip range above a ratio of 1; wider than below, so that unlikely tokens can become likely."""
    dual_clip: float = 10.0
    """Maximum ratio for negative advantages; 0 for no bound."""
    max_rounds: int = 10
    """Maximum rollouts of an iteration before it trains on the available groups; 1 disables dynamic sampling."""
    overlong_limit: int = 0
    """Longest completion in tokens, at which the penalty is full; 0 for no penalty."""
    overlong_buffer: int = 1
    """Number of tokens before that length at which the penalty starts."""
    overlong_factor: float = 1.0
    """The full penalty, taken from the reward of the turn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("max_rounds", self.max_rounds, 1)
        within("overlong_limit", self.overlong_limit, 0)
        within("overlong_buffer", self.overlong_buffer, 1)
        within("overlong_factor", self.overlong_factor, 0)
        if 0 < self.overlong_limit < self.overlong_buffer:
            raise ConfigError(
                f"overlong_buffer must be at most overlong_limit={self.overlong_limit}, got {self.overlong_buffer}."
            )


def informative_groups(trajectories: Sequence[Trajectory]) -> tuple[list[list[Trajectory]], int]:
    """Return the groups whose usable episodes do not all return the same, and the number of all groups.

    Returns that differ by no more than rounding are the same. A group that faults left with one episode has nothing to
    compare and is dropped too.
    """
    groups: dict[int, list[Trajectory]] = {trajectory.spec.group: [] for trajectory in trajectories}
    for trajectory in usable(trajectories):
        groups[trajectory.spec.group].append(trajectory)
    return [members for members in groups.values() if _differ([each.reward_sum for each in members])], len(groups)


def _differ(returns: Sequence[float]) -> bool:
    low, high = min(returns, default=0.0), max(returns, default=0.0)
    return not math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-9)


@ALGORITHMS.register("dapo")
class DAPO(OutcomeMethod[DAPOConfig]):
    """Decoupled clip and dynamic sampling policy optimisation."""

    Config: ClassVar[type[DAPOConfig]] = DAPOConfig

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather groups with unequal returns, as many as one rollout has groups; fewer if the rounds are used up."""
        if self.config.max_rounds == 1:
            return rollout()
        kept: list[list[Trajectory]] = []
        wanted = played = rounds = 0
        latest: list[Trajectory] = []
        while rounds < self.config.max_rounds and (not rounds or len(kept) < wanted):
            latest = rollout()
            found, groups = informative_groups(latest)
            kept, played, rounds = kept + found, played + groups, rounds + 1
            wanted = wanted or groups
        counts = {
            "sampling_rounds": float(rounds),
            "groups_played": float(played),
            "groups_dropped": float(played - len(kept)),
            "groups_missing": float(max(wanted - len(kept), 0)),
        }
        chosen = [trajectory for members in kept[:wanted] for trajectory in members]
        return with_counts(chosen or latest, counts)

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group, overlong completions penalised before."""
        config = self.config
        if config.overlong_limit:
            penalties = F.overlong_penalty(
                table.num_tokens.to(table.reward.dtype),
                limit=config.overlong_limit,
                buffer=config.overlong_buffer,
                factor=config.overlong_factor,
            )
            table = replace(table, reward=table.reward + penalties)
        credit = group_credit(table, episode_advantages(table, config, scale_by_std=True), config)
        return Credit(credit.advantages, metrics={**credit.metrics, **counts_of(table.columns["episode"])})
