"""GKD: generalised knowledge distillation on what the policy sampled (Agarwal et al. 2023, arXiv 2306.13649).

With ``p`` the policy's and ``q`` the teacher's next-token distribution before each sampled token,

    L = mean of beta * KL(q, m) + (1 - beta) * KL(p, m)        m = (1 - beta) * p + beta * q

over the whole vocabulary; ``beta`` 0 is KL(q, p), the forward divergence, and 1 is KL(p, q), the reverse one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, TypeVar, get_args

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, one_of, required, sampled, within
from turngym.trainers.algorithms.base.taught import TaughtConfig, TaughtMethod, gaps_to_teacher, never
from turngym.trainers.core.algorithm import Credit, Divergence, LossInputs
from turngym.trainers.core.turn_table import TurnTable

Whose: TypeAlias = Literal["student", "teacher"]


@dataclass(frozen=True)
class GKDConfig(TaughtConfig):
    """Settings of generalised knowledge distillation."""

    beta: float = 0.5
    """0 for KL(teacher, policy), 1 for KL(policy, teacher), between them a Jensen-Shannon divergence."""
    top: int = 0
    """Likeliest tokens that the divergence is taken over, renormalised; 0 for the whole vocabulary."""
    top_of: Whose = "student"
    """Whose likeliest tokens these are."""
    tail: bool = False
    """True keeps the probability of all other tokens as one more token, in place of renormalising."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("beta", self.beta, 0, 1)
        within("top", self.top, 0)
        one_of("top_of", self.top_of, get_args(Whose))


GKDConfigT = TypeVar("GKDConfigT", bound=GKDConfig)


class DivergenceMethod(TaughtMethod[GKDConfigT]):
    """A method that minimises a divergence from the teacher over the vocabulary."""

    @property
    def reads_advantages(self) -> bool:
        """False: the divergence is the only signal."""
        return False

    @property
    def divergence(self) -> Divergence:
        """The divergence of the settings."""
        return Divergence(self.config.beta, self.config.top, self.config.top_of, self.config.tail)

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its gap to the teacher, to be looked at; tokens without a teacher leave the loss."""
        gaps = gaps_to_teacher(table, table.token_logprob)
        return Credit(gaps.values, metrics=gaps.metrics(), masked=gaps.masked)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the divergence of each token."""
        found = sampled(required(inputs.divergence, "divergence"), inputs)
        log_ratio = F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        none = never(inputs)
        found = found + 0.0 * torch.where(inputs.action_mask, inputs.logprobs, 0.0)  # a gradient in empty batches too
        return Surrogate(F.ClippedSurrogate(found, found, none, none), F.exp_clamped(log_ratio), log_ratio)


@ALGORITHMS.register("gkd")
class GKD(DivergenceMethod[GKDConfig]):
    """On-policy distillation over the vocabulary, with a Jensen-Shannon divergence."""

    Config: ClassVar[type[GKDConfig]] = GKDConfig
