"""SEED-GRPO: groups whose answers disagree in meaning move the policy less (Chen et al. 2025, arXiv 2505.12346).

The semantic entropy of a group is high if its episodes end in many different answers: the policy does not know, and the
reward of a single sample says little. The advantages of the group, which are not divided by a deviation, shrink by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation, Rollout
from turngym.trainers.core.columns import with_columns
from turngym.trainers.core.turn_table import TurnTable

_Shape: TypeAlias = Literal["linear", "exponential"]
_Likelihood: TypeAlias = Literal["sum", "mean"]
ANSWER = "answer"
"""Column of an episode with its answer."""


@dataclass(frozen=True)
class SEEDGRPOConfig(OutcomeConfig):
    """Settings of SEED-GRPO."""

    normalisation: Normalisation = "trajectory_sum"
    """Over what the policy loss is averaged: token terms are summed inside an episode, then averaged over episodes."""
    alpha: float = 0.02
    """Strength: the factor follows from alpha times the entropy over the log of the group's size."""
    shape: _Shape = "linear"
    """Factor of a group: 1 - x but at least 0, or exp(-x)."""
    likelihood: _Likelihood = "sum"
    """Log-likelihood of an episode: the sum over its tokens, or their mean, with which length does not count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("alpha", self.alpha, 0, 100)
        one_of("shape", self.shape, get_args(_Shape))
        one_of("likelihood", self.likelihood, get_args(_Likelihood))


def semantic_entropy(logliks: Tensor, answers: Sequence[str]) -> float:
    """Return minus the mean over distinct answers of the log of their summed likelihoods.

    Args:
        logliks: Log-likelihood of each episode of a group.
        answers: Answer of each one; equal texts are one meaning.

    >>> round(semantic_entropy(torch.tensor([-10.0, -12.0, -11.0]), ["4", "4", "5"]), 4)
    10.4365
    """
    clusters = [[k for k, each in enumerate(answers) if each == answer] for answer in dict.fromkeys(answers)]
    return -float(torch.stack([logliks[members].logsumexp(0) for members in clusters]).mean())


def with_answer(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with its last action as a column, without the spaces around it and in small letters."""
    action = next((turn.action for turn in reversed(trajectory.turns) if turn.completion_ids), "")
    return with_columns(trajectory, {ANSWER: " ".join(action.lower().split())})


@ALGORITHMS.register("seed_grpo")
class SEEDGRPO(OutcomeMethod[SEEDGRPOConfig]):
    """Group-relative policy optimisation, less for groups whose answers disagree."""

    Config: ClassVar[type[SEEDGRPOConfig]] = SEEDGRPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the log-probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.OLD_LOGPROBS}

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories, each with its answer."""
        return [with_answer(each) for each in rollout()]

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the group's mean, times the factor of the group."""
        groups, answers = table.episode_group, table.texts("episode", ANSWER)
        factors = torch.ones(int(groups.max()) + 1 if len(groups) else 0, dtype=table.reward.dtype)
        of_episodes = table.token_sum if self.config.likelihood == "sum" else table.token_mean
        likelihoods = of_episodes(table.token_old_logprob)
        for group in range(len(factors)):
            members = torch.nonzero(groups == group).flatten()
            if len(members) > 1:
                entropy = semantic_entropy(likelihoods[members], [answers[k] for k in members.tolist()])
                scaled = self.config.alpha * entropy / math.log(len(members))
                factors[group] = max(1 - scaled, 0.0) if self.config.shape == "linear" else math.exp(-scaled)
        singleton = self.config.singleton
        centred = F.group_advantages(table.episode_return(), groups, scale_by_std=False, singleton=singleton)
        credit = group_credit(table, (centred * factors[groups])[table.episode], self.config)
        metrics = {"seed_factor": float(factors.mean()) if len(factors) else 1.0}
        return replace(credit, metrics={**credit.metrics, **metrics})
