"""SDPO: self-distillation policy optimisation (arXiv 2601.20802; repository huggingface/trl, sdpo).

The teacher is the policy, or its moving average, that was shown more: the first other episode of the group that solved
the task, or feedback. With ``p`` the policy, ``o`` the old one and ``T`` the teacher,

    L = (1 - weight) * L_grpo + weight * sg(log p - log T) * log p * sg(min(p / o, cap))

Episodes without a lesson have no distillation term and count in its average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import sampled, within
from turngym.trainers.algorithms.base.taught import gaps_to_teacher, teacher_logprobs
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Need, Normalisation, Term
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class SDPOConfig(GroupConfig):
    """Settings of self-distillation policy optimisation."""

    normalisation: Normalisation = "trajectory"
    """Normalisation of both terms."""
    weight: float = 1.0
    """Weight of the distillation; the clipped policy loss has the rest."""
    cap: float = 2.0
    """Maximum importance ratio that weighs a token of the distillation; 0 for no weight."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("weight", self.weight, 0, 1)
        within("cap", self.cap, 0)


@ALGORITHMS.register("sdpo")
class SDPO(OutcomeMethod[SDPOConfig]):
    """Self-distillation policy optimisation."""

    Config: ClassVar[type[SDPOConfig]] = SDPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups and the teacher's log-probabilities, and what the policy loss needs."""
        return super().needs | {Need.TEACHER_LOGPROBS}

    @property
    def reads_advantages(self) -> bool:
        """True if the clipped policy loss has a weight."""
        return self.config.weight < 1

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group, and hand on the teacher's log-probability."""
        credit = group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)
        gaps = gaps_to_teacher(table, table.token_logprob)
        teacher = torch.where(gaps.taught, teacher_logprobs(table), 0.0)
        columns = {"teacher_logprob": teacher, "taught": gaps.taught}
        return replace(credit, columns=columns, metrics={**credit.metrics, **gaps.metrics()})

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms of the clipped loss, the policy's weighted, and the distillation."""
        output = super().loss(inputs)
        policy = output.terms["policy"]
        taught = replace(inputs, action_mask=inputs.action_mask & inputs.numbers("taught").bool())
        logprobs, old = (sampled(each, taught) for each in (inputs.logprobs, inputs.old_logprobs))
        teacher = inputs.numbers("teacher_logprob").to(logprobs)
        found = F.self_distillation(logprobs, teacher, old, cap=self.config.cap)
        terms = {
            **output.terms,
            "policy": policy._replace(values=(1 - self.config.weight) * policy.values),
            "distillation": Term(self.config.weight * found, self.normalisation),
        }
        return replace(output, terms=terms)
