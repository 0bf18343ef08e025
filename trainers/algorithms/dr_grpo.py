"""Dr. GRPO: GRPO without its two divisions (Liu et al. 2025, arXiv 2503.20783).

The return is compared with the group's mean and not divided by the group's deviation, which would weigh easy and hard
instances more. The terms of an episode's tokens are summed and divided by one constant, not by the episode's length,
which would make long failures cheap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Normalisation, Term
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class DrGRPOConfig(GroupConfig):
    """Settings of Dr. GRPO."""

    normalisation: Normalisation = "trajectory_sum"
    """Over what the policy loss is averaged: token terms are summed inside an episode, then averaged over episodes."""
    constant: float = 3000.0
    """Additional divisor of every term: about the maximum number of tokens of an episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("constant", self.constant, 1)


@ALGORITHMS.register("dr_grpo")
class DrGRPO(OutcomeMethod[DrGRPOConfig]):
    """Group-relative policy optimisation done right."""

    Config: ClassVar[type[DrGRPOConfig]] = DrGRPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's return less the mean of the group."""
        return group_credit(table, episode_advantages(table, self.config, scale_by_std=False), self.config)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the clipped surrogate over the constant."""
        whole, constant = super().surrogate(inputs), self.config.constant
        policy = whole.policy._replace(loss=whole.policy.loss / constant, unclipped=whole.policy.unclipped / constant)
        return whole._replace(policy=policy)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms, those of entropy and KL divergence over the constant too."""
        output = super().loss(inputs)
        rest = {
            name: Term(term.values / self.config.constant, term.over)
            for name, term in output.terms.items()
            if name != "policy"
        }
        return replace(output, terms={**output.terms, **rest})
