"""ARPO: more episodes from where the policy becomes uncertain (Dong et al. 2025, arXiv 2507.19849).

An iteration begins with a few episodes of each instance. Where the policy hesitates more at a turn than it did at its
first one, another episode branches off there, from the environment's snapshot, until the group has as many episodes as
were asked for:

    p = clip(u - w * (H_k - H_0), 0, 1)         branch if p <= threshold; u uniform in [0, 1)

The advantage is that of GRPO over all episodes of the group. Turns that several episodes share are trained on once,
with the mean of their advantages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.agents.trajectory import Branch, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.seeding import stream
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Rollout
from turngym.trainers.core.columns import counts_of, with_columns, with_counts
from turngym.trainers.core.turn_table import TurnTable, usable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class ARPOConfig(OutcomeConfig):
    """Settings of ARPO."""

    episodes_per_group: int = 16
    """Episodes of a group, branches included; a rollout's group size is how many it starts with."""
    entropy_weight: float = 0.2
    """Weight of a rise of entropy in the branching probability."""
    threshold: float = 0.5
    """An episode branches where a uniform number, less the weighted rise of entropy, is at most that."""
    entropy_tokens: int = 20
    """Number of first tokens of a turn over which its entropy is averaged."""
    branches_per_turn: int = 1
    """Maximum number of branches at one turn."""
    ddof: int = 1
    """1 for the sample standard deviation, 0 for the population's."""
    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("episodes_per_group", self.episodes_per_group, 2)
        within("entropy_weight", self.entropy_weight, 0)
        within("threshold", self.threshold, 0, 1)
        within("entropy_tokens", self.entropy_tokens, 1)
        within("branches_per_turn", self.branches_per_turn, 1)
        within("ddof", self.ddof, 0, 1)
        within("epsilon", self.epsilon, 0)


def branch_score(uniform: float, rise: float, weight: float) -> float:
    """Return the number that is at most the threshold where an episode branches.

    >>> round(branch_score(0.6, 0.8, 0.2), 2), round(branch_score(0.45, -0.5, 0.2), 2)
    (0.44, 0.55)
    """
    return min(max(uniform - weight * rise, 0.0), 1.0)


def with_origins(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories, those that branched off with the number of their parent and the turn as columns."""

    def with_origin(trajectory: Trajectory) -> Trajectory:
        branch = trajectory.spec.branch
        if branch is None:
            return trajectory
        origin = {"parent": float(branch.trajectory.spec.episode), "parent_turn": float(branch.turn)}
        return with_columns(trajectory, origin)

    return [with_origin(trajectory) for trajectory in trajectories]


def shared_mean(table: TurnTable, scores: Float[Tensor, "episode"]) -> Float[Tensor, "turn"]:
    """Return for each turn the mean score of the episodes that share it: its own, and those that branched off later."""
    position = torch.arange(table.num_turns)
    first = position[table.turn == 0]
    sums, counts = scores[table.episode].clone(), torch.ones(table.num_turns, dtype=scores.dtype)
    parent, parent_turn = table.numbers("episode", "parent"), table.numbers("episode", "parent_turn")
    place = {number: episode for episode, number in enumerate(table.episode_number.tolist())}

    def origin(episode: int) -> tuple[int, int]:
        """Return the episode that this one branched off from, -1 if that is not here, and at which turn."""
        if bool(parent[episode].isnan()):
            return -1, 0
        return place.get(int(parent[episode]), -1), int(parent_turn[episode])

    for episode in range(table.num_episodes):
        above, at = origin(episode)
        while above >= 0:
            shared = slice(int(first[above]), int(first[above]) + at)
            sums[shared] += scores[episode]
            counts[shared] += 1
            above, at = origin(above)
    return sums / counts


@ALGORITHMS.register("arpo")
class ARPO(OutcomeMethod[ARPOConfig]):
    """Group-relative policy optimisation with episodes that branch off where the policy is uncertain.

    ``collect`` gives episodes that branched off the columns ``parent`` and ``parent_turn``.
    """

    Config: ClassVar[type[ARPOConfig]] = ARPOConfig

    def __init__(self, config: ARPOConfig) -> None:
        super().__init__(config)
        self._iteration = 0

    @property
    def needs(self) -> frozenset[Need]:
        """Snapshots, the entropies of what was sampled, groups, and what the loss needs."""
        return super().needs | {Need.SNAPSHOTS, Need.SAMPLED_ENTROPIES}

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the iteration, for the random numbers."""
        self._iteration = iteration

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather episodes, then branches, branches of branches, and for what is left of the budget fresh episodes.

        Raises:
            ConfigError: A group starts with more episodes than it may have.
        """
        found = rollout()
        budget = Counter({trajectory.spec.group: self.config.episodes_per_group for trajectory in found})
        budget.subtract(trajectory.spec.group for trajectory in found)
        if min(budget.values(), default=0) < 0:
            raise ConfigError(
                f"episodes_per_group={self.config.episodes_per_group} is less than the group size of the rollout: "
                "raise --arpo.episodes-per-group, or lower --rollout.group-size."
            )
        latest, at_rises = usable(found), 0
        starts = [Branch(trajectory, 0) for trajectory in latest if trajectory.turns[0].snapshot]
        while branches := self._affordable(self._rises(latest), budget):
            at_rises += len(branches)
            played = rollout(branches=branches)
            found, latest = found + played, usable(played)
        again = self._affordable(starts * self.config.episodes_per_group, budget)
        found += rollout(branches=again) if again else []
        return with_counts(with_origins(found), {"branches_at_rises": at_rises, "branches_at_start": len(again)})

    @staticmethod
    def _affordable(branches: Sequence[Branch], budget: Counter[int]) -> list[Branch]:
        """Return the branches that the budget of their groups allows, and charge them to it."""
        chosen = []
        for branch in branches:
            group = branch.trajectory.spec.group
            if budget[group] > 0:
                budget[group] -= 1
                chosen.append(branch)
        return chosen

    def _rises(self, trajectories: Sequence[Trajectory]) -> list[Branch]:
        """Return the turns at which episodes branch, early turns first."""
        found = []
        for trajectory in trajectories:
            depth = len(trajectory.earlier_turns)
            initial = self._entropy((*trajectory.earlier_turns, *trajectory.turns)[0])
            for index, turn in enumerate(trajectory.turns):
                if index == 0 or not (turn.snapshot and turn.entropies):
                    continue  # the first turn is where all episodes of the group start, or where this one branched off
                draws = stream("arpo", self._iteration, trajectory.spec.seed, trajectory.spec.episode, index).random(
                    self.config.branches_per_turn
                )
                rise = self._entropy(turn) - initial
                scores = [branch_score(float(draw), rise, self.config.entropy_weight) for draw in draws]
                count = sum(score <= self.config.threshold for score in scores)
                found += [(depth + index, Branch(trajectory, index))] * count
        return [branch for _, branch in sorted(found, key=lambda item: item[0])]

    def _entropy(self, turn: Turn) -> float:
        """Return the mean entropy of a turn's first tokens as a share of the largest possible one."""
        first = turn.entropies[: self.config.entropy_tokens]
        return sum(first) / len(first) if first else 0.0

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the mean advantage of the episodes that its turn belongs to."""
        config, returns = self.config, table.episode_return()
        scores = torch.cat([returns, shared_mean(table, returns)])
        counted = torch.arange(len(scores)) < len(returns)
        both = F.group_advantages(
            scores,
            torch.cat([table.episode_group, table.group]),
            counted,
            scale_by_std=True,
            ddof=config.ddof,
            epsilon=config.epsilon,
            singleton=config.singleton,
        )
        credit = group_credit(table, both[len(returns) :], config)
        counts = {"branches_at_rises": 0.0, "branches_at_start": 0.0, **counts_of(table.columns["episode"])}
        return Credit(credit.advantages, metrics={**credit.metrics, **counts})
