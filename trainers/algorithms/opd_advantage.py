"""OPD as an advantage: on-policy distillation on top of another method (repository THUDM/slime, ``--use-opd``).

A modifier. With ``p`` the policy before the update and ``T`` the teacher,

    A <- task_weight * A_base + coef * sum over s >= t of discount^(s - t) * (log T - log p)_s

over the sampled tokens of an episode; without a discount each token has its own gap alone. The base method's loss,
clip and averages are used as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.algorithms.base.taught import gaps_to_teacher
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class OPDAdvantageConfig:
    """Settings of on-policy distillation as an advantage."""

    coef: float = 1.0
    """Weight of the gap to the teacher."""
    task_weight: float = 1.0
    """Weight of the base method's advantages; 0 distils alone."""
    discount: float = 0.0
    """Discount per token of the gaps after a token; 0 counts its own alone."""

    def __post_init__(self) -> None:
        within("coef", self.coef, 0)
        within("task_weight", self.task_weight, 0)
        within("discount", self.discount, 0, 1)


@ALGORITHMS.register("opd_advantage")
class OPDAdvantage(Modifier[OPDAdvantageConfig]):
    """On-policy distillation as an advantage on another method."""

    Config: ClassVar[type[OPDAdvantageConfig]] = OPDAdvantageConfig
    needs_advantages: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Need]:
        """The log-probabilities of the teacher and of the policy before the update, and what the base needs."""
        return super().needs | {Need.TEACHER_LOGPROBS, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Add the gap to the teacher to the base's advantages; nothing where the teacher is silent."""
        credit = super().credit(table)
        gaps = gaps_to_teacher(table, table.token_old_logprob)
        rest = F.discounted_rest(gaps.values, table.to_tokens(table.episode), gamma=self.config.discount)
        advantages = self.config.task_weight * credit.advantages + self.config.coef * rest
        return replace(credit, advantages=advantages, metrics={**credit.metrics, **gaps.metrics()})
