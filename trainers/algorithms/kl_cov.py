"""KL-Cov: tokens with the highest covariance of log-probability and advantage are held near the old policy.

A modifier (The Entropy Mechanism, arXiv 2505.22617). Without any clip; the few tokens that would take most entropy away
get a penalty of the absolute log-ratio instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.algorithms.clip_cov import covariances, in_loss
from turngym.trainers.core.algorithm import Credit, LossInputs, Need
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class KLCovConfig:
    """Settings of KL-Cov."""

    share: float = 0.0002
    """Share of the batch's tokens that are penalised, at least one token."""
    coef: float = 1.0
    """Weight of the penalty."""

    def __post_init__(self) -> None:
        within("share", self.share, 0, 1)
        within("coef", self.coef, 0)


def highest(found: Tensor, counted: Tensor, share: float) -> Tensor:
    """Return the mask of the highest numbers among those counted: a share of them, at least one.

    >>> highest(torch.tensor([3.0, 1.0, 9.0]), torch.tensor([True, True, False]), 0.5)
    tensor([ True, False, False])
    """
    chosen = torch.zeros_like(counted)
    places = torch.nonzero(counted).flatten()
    order = found[places].argsort(descending=True, stable=True)
    chosen[places[order[: max(int(share * len(places)), 1)]]] = True
    return chosen


@ALGORITHMS.register("kl_cov")
class KLCov(PolicyLoss[KLCovConfig]):
    """A penalty for tokens of high covariance instead of the clip, on another method."""

    Config: ClassVar[type[KLCovConfig]] = KLCovConfig

    @property
    def needs(self) -> frozenset[Need]:
        """The log-probabilities before the first update, and what the base needs."""
        return super().needs | {Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and hand on which tokens are penalised."""
        credit = super().credit(table)
        counted = in_loss(table, credit)
        found = covariances(table.token_old_logprob, credit.advantages, counted)
        chosen = highest(found, counted, self.config.share)
        metrics = {"kl_cov_least": float(found[chosen].min()) if chosen.any() else 0.0}
        columns = {**credit.columns, "kl_cov_chosen": chosen}
        return replace(credit, columns=columns, metrics={**credit.metrics, **metrics})

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return the base's surrogate without its clip."""
        whole, never = found.policy.unclipped, torch.zeros_like(found.policy.clipped)
        return found._replace(policy=found.policy._replace(loss=whole, clipped=never, clipped_lower=never))

    def penalty(self, found: Surrogate, inputs: LossInputs) -> Tensor | None:
        """Return the absolute log-ratio of the tokens that are penalised."""
        chosen = inputs.numbers("kl_cov_chosen").to(found.log_ratio)
        return self.config.coef * chosen * found.log_ratio.abs()
