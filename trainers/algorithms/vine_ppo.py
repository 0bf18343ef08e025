"""VinePPO: values by playing on from the states of an episode (Kazemnejad et al. 2024, arXiv 2410.01679).

There is no critic. The value of the state before a turn is the mean return of fresh episodes that begin with the
environment's snapshot of that state and are played to their end by the policy:

    A_k = r_k + gamma * V_{k+1} - V_k           0 after the end

Those episodes only estimate values; they count as turns of the run and are not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from turngym.agents.trajectory import Branch, Trajectory, Turn
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, within
from turngym.trainers.core.algorithm import Credit, Need, Rollout
from turngym.trainers.core.columns import counts_of, with_columns, with_counts
from turngym.trainers.core.turn_table import TurnTable, usable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class VinePPOConfig(ClippedConfig):
    """Settings of VinePPO."""

    kl_coef: float = 1e-4
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    num_rollouts: int = 9
    """Episodes that are played from each state; equal states are measured once."""
    gamma: float = 1.0
    """Discount per turn."""
    whiten: bool = True
    """True if advantages are shifted and scaled to mean 0 and variance 1 over the tokens of the batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("num_rollouts", self.num_rollouts, 1)
        within("gamma", self.gamma, 0, 1)


def state_of(turn: Turn) -> tuple[bytes, tuple[int, ...]]:
    """Return everything that the rest of an episode depends on: the environment's state and what the policy reads."""
    return turn.snapshot, turn.prompt_ids


@ALGORITHMS.register("vine_ppo")
class VinePPO(ClippedMethod[VinePPOConfig]):
    """Proximal policy optimisation with values of sampled continuations.

    ``collect`` gives turns the column ``sampled_value``.
    """

    Config: ClassVar[type[VinePPOConfig]] = VinePPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Snapshots, and what the policy loss needs."""
        return super().needs | {Need.SNAPSHOTS}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather the episodes of the iteration, each turn with the value of the state before it."""
        trajectories = rollout()
        first: dict[tuple[bytes, tuple[int, ...]], Branch] = {}
        for trajectory in usable(trajectories):
            for index, turn in enumerate(trajectory.turns):
                if turn.snapshot:
                    first.setdefault(state_of(turn), Branch(trajectory, index))
        count = self.config.num_rollouts
        played = rollout(branches=[branch for branch in first.values() for _ in range(count)]) if first else []
        values = {state: self._mean_return(played[k * count : (k + 1) * count]) for k, state in enumerate(first)}

        def valued(turn: Turn) -> Turn:
            return with_columns(turn, {"sampled_value": values.get(state_of(turn), math.nan)})

        found = [replace(each, turns=[valued(turn) for turn in each.turns]) for each in trajectories]
        return with_counts(found, {"states_measured": len(first)})

    def _mean_return(self, episodes: Sequence[Trajectory]) -> float:
        """Return the mean discounted return of continuations, nan if all of them broke."""
        whole = [episode for episode in episodes if not episode.fault]
        found = [
            sum(
                self.config.gamma**k * (turn.reward - self.config.invalid_penalty * (not turn.action_is_valid))
                for k, turn in enumerate(episode.turns)
            )
            for episode in whole
        ]
        return math.fsum(found) / len(found) if found else math.nan

    def values(self, table: TurnTable) -> tuple[Float[Tensor, "turn"], Float[Tensor, "turn"]]:
        """Return the value before and after each turn; one that was not measured makes its turn's advantage 0."""
        rewards, gamma = self.penalised_rewards(table), self.config.gamma
        before = table.numbers("turn", "sampled_value").to(rewards.dtype).clone()
        after = torch.zeros_like(before)
        for turn in reversed(range(table.num_turns)):
            is_last = turn + 1 == table.num_turns or table.episode[turn + 1] != table.episode[turn]
            after[turn] = 0.0 if is_last else before[turn + 1]
            if bool(before[turn].isnan()):
                before[turn] = rewards[turn] + gamma * after[turn]
        return before, after

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's reward plus what the turn changed about the value."""
        rewards, sampled = self.penalised_rewards(table), table.numbers("turn", "sampled_value")
        unknown = sampled.isnan()
        before, after = self.values(table)
        advantages = table.to_tokens((rewards + self.config.gamma * after - before).masked_fill(unknown, 0.0))
        metrics = {
            "states_measured": 0.0,
            **counts_of(table.columns["episode"]),
            "turns_without_value": float(unknown.sum()),
            "sampled_value": float(sampled[~unknown].mean()) if not bool(unknown.all()) else 0.0,
        }
        return Credit(F.whiten(advantages) if self.config.whiten else advantages, metrics=metrics)
