"""CISPO: the importance weight is clipped, and no token loses its gradient (MiniMax-M1, arXiv 2506.13585).

    L = -stop_gradient(clip(ratio)) * A * log p

PPO drops the tokens whose ratio has left the range, often the rare ones that a chain of thought turns on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, sampled
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class CISPOConfig(GroupConfig):
    """Settings of CISPO."""

    keeps: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    clip_low: float = 1.0
    """Width of the range of weights below 1; 1 means no lower end."""
    clip_high: float = 4.0
    """Width of the range of weights above 1; TRL writes its upper end, so its 5.0 is 4.0 here."""
    dual_clip: float = 0.0
    """Always 0: a weight that is clipped on both sides needs no other bound."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dual_clip != 0:
            raise ConfigError(
                f"cispo clips its weights on both sides and has no dual_clip: leave 0, got {self.dual_clip}."
            )


@ALGORITHMS.register("cispo")
class CISPO(OutcomeMethod[CISPOConfig]):
    """Policy gradient with clipped importance weights."""

    Config: ClassVar[type[CISPOConfig]] = CISPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        return group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the clipped weight times minus the advantage times the log-probability."""
        log_ratio = F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        ratio = self.ratio_level.ratio(log_ratio, inputs.turn_ids)
        policy = F.cispo_surrogate(
            ratio,
            sampled(inputs.logprobs, inputs),
            inputs.advantages,
            clip_low=self.config.clip_low,
            clip_high=self.config.clip_high,
        )
        return Surrogate(policy, ratio, log_ratio)
