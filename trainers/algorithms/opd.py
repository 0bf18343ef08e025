"""OPD: on-policy distillation as a loss (repository PrimeIntellect-ai/prime-rl, ref_kl_loss_fn).

With ``p`` the policy, ``b`` the policy that sampled and ``T`` the teacher, over the sampled tokens

    L = mean of -keep * sg(log T - log p) * p / b + penalty * (log p - log b)^2

``keep`` leaves out tokens whose probability fell by more than ``drop`` since they were sampled, whatever the sign of
the signal; the squared term also acts on those. In the first update the gradient is that of the KL divergence from
policy to teacher at each token, with the states taken as given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.base.taught import TaughtConfig, TaughtMethod, gaps_to_teacher
from turngym.trainers.core.algorithm import Credit, LossInputs, LossOutput, Term
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class OPDConfig(TaughtConfig):
    """Settings of on-policy distillation."""

    drop: float = 0.2
    """Fall of a token's probability beyond which it has no gradient."""
    penalty: float = 1e-3
    """Weight of the squared log-ratio to the policy that sampled."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("drop", self.drop, 0, 1)
        within("penalty", self.penalty, 0)


@ALGORITHMS.register("opd")
class OPD(TaughtMethod[OPDConfig]):
    """On-policy distillation from a teacher."""

    Config: ClassVar[type[OPDConfig]] = OPDConfig

    @property
    def weighs_sampler(self) -> bool:
        """The ratio is taken against the policy that sampled."""
        return True

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its gap to the teacher; tokens without a teacher leave the loss."""
        gaps = gaps_to_teacher(table, table.token_logprob)
        return Credit(gaps.values, metrics=gaps.metrics(), masked=gaps.masked)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the gap to the teacher, as the policy is now, times the ratio to the policy that sampled."""
        log_ratio = F.log_ratios(inputs.logprobs, inputs.behaviour_logprobs, inputs.action_mask)
        behaviour = inputs.behaviour_logprobs.masked_fill(~inputs.action_mask, 0.0)
        policy = F.distillation_surrogate(log_ratio, inputs.advantages, behaviour, drop=self.config.drop)
        return Surrogate(policy, log_ratio.exp(), log_ratio)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the policy term and the penalty."""
        output = super().loss(inputs)
        log_ratio = F.log_ratios(inputs.logprobs, inputs.behaviour_logprobs, inputs.action_mask)
        penalty = Term(self.config.penalty * log_ratio.square(), self.normalisation)
        return replace(output, terms={**output.terms, "penalty": penalty})
