"""IW-OPD: importance-weighted on-policy distillation (arXiv 2606.22600; repository huggingface/trl, iw_opd).

With ``a`` the teacher's log-probability of a token minus that of the policy that sampled,

    L = mean of -w * a * log p        w = 1 + gamma * (1 - sum of |a| before the token / sum of |a|)

so tokens with most of the disagreement still ahead of them weigh more. There is no ratio and no clip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, one_of, sampled, within
from turngym.trainers.algorithms.base.correction import segments_of
from turngym.trainers.algorithms.base.taught import TaughtConfig, TaughtMethod, gaps_to_teacher, never
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import TurnTable

Unit: TypeAlias = Literal["turn", "episode"]


@dataclass(frozen=True)
class IWOPDConfig(TaughtConfig):
    """Settings of importance-weighted on-policy distillation."""

    gamma: float = 0.5
    """Additional weight of a token with all of the disagreement ahead of it."""
    unit: Unit = "episode"
    """Tokens whose disagreement is compared: those of a turn or of an episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0)
        one_of("unit", self.unit, get_args(Unit))


@ALGORITHMS.register("iw_opd")
class IWOPD(TaughtMethod[IWOPDConfig]):
    """On-policy distillation that weighs early tokens by the disagreement ahead."""

    Config: ClassVar[type[IWOPDConfig]] = IWOPDConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its weighted gap to the teacher; tokens without a teacher leave the loss."""
        gaps = gaps_to_teacher(table, table.token_logprob)
        segments = segments_of(table, self.config.unit)
        assert segments is not None  # tokens are not a unit here
        weights = F.remaining_gap_weights(gaps.values, segments, gamma=self.config.gamma)
        return Credit(weights * gaps.values, metrics=gaps.metrics(), masked=gaps.masked)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return minus the advantage times the log-probability."""
        log_ratio = F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        plain = -inputs.advantages * sampled(inputs.logprobs, inputs)
        none = never(inputs)
        return Surrogate(F.ClippedSurrogate(plain, plain, none, none), F.exp_clamped(log_ratio), log_ratio)
