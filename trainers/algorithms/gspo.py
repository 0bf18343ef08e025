"""GSPO: GRPO whose importance ratio is that of a whole completion (Zheng et al. 2025, arXiv 2507.18071).

The ratio is the geometric mean of the token ratios, so its clip range is narrow. The sequence of the paper is a turn
here, or with ``level="episode"`` all turns of an episode together: in an episode of one turn both are the paper's.
``ratio="turn_geometric_by_token"`` is GSPO-token, whose gradient goes through each token's own log-probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import RatioLevel, RatioName, Surrogate, one_of
from turngym.trainers.algorithms.dpo import episode_totals
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, LossInputs, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable

Sequence: TypeAlias = Literal["turn", "episode"]


@dataclass(frozen=True)
class GSPOConfig(GroupConfig):
    """Settings of GSPO."""

    keeps: ClassVar[frozenset[str]] = frozenset({"dual_clip"})

    clip_low: float = 3e-4
    """Width of the clip range below a ratio of 1; narrow, for a mean over tokens moves little."""
    clip_high: float = 4e-4
    """Clip range above a ratio of 1."""
    ratio: RatioName = "turn_geometric"
    """Level of the importance ratio: the geometric mean over a turn, or that mean by token for GSPO-token."""
    normalisation: Normalisation = "turn"
    """Over what the policy loss is averaged: every completion weighs the same."""
    level: Sequence = "turn"
    """What has one ratio: a turn, or all turns of an episode, for which ``trajectory`` is the source's average."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("level", self.level, get_args(Sequence))


@ALGORITHMS.register("gspo")
class GSPO(OutcomeMethod[GSPOConfig]):
    """Group sequence policy optimisation."""

    Config: ClassVar[type[GSPOConfig]] = GSPOConfig

    def __init__(self, config: GSPOConfig) -> None:
        super().__init__(config)
        if config.level == "episode":
            self.ratio_level = RatioLevel(self.ratio_level.ratio, "trajectory")

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, what the loss needs, and for ratios of episodes the log-probabilities before every update."""
        episodes = {Need.CURRENT_LOGPROBS, Need.OLD_LOGPROBS} if self.config.level == "episode" else set()
        return super().needs | episodes

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        credit = group_credit(table, episode_advantages(table, self.config, scale_by_std=True), self.config)
        if self.config.level == "turn":
            return credit
        return replace(credit, columns=self.update_columns(table, table.token_old_logprob))

    def update_columns(self, table: TurnTable, logprobs: Tensor) -> dict[str, Tensor]:
        """Return the mean log-ratio of each token's episode."""
        means, _ = episode_totals(table, logprobs - table.token_old_logprob, "trajectory")
        return {"episode_log_ratio": table.to_tokens(means[table.episode])}

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the per-token policy loss before normalisation."""
        if self.config.level == "turn":
            return super().surrogate(inputs)
        config, log_ratio = self.config, F.log_ratios(inputs.logprobs, inputs.old_logprobs, inputs.action_mask)
        whole = F.exp_clamped(inputs.numbers("episode_log_ratio").to(log_ratio))
        ratio = whole * (log_ratio - log_ratio.detach()).exp()
        policy = F.clipped_surrogate(
            ratio,
            inputs.advantages,
            clip_low=config.clip_low,
            clip_high=config.clip_high,
            dual_clip=config.dual_clip,
        )
        return Surrogate(policy, ratio, log_ratio)

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the method with its importance ratio taken over something else.

        Raises:
            ConfigError: Its ratio is that of an episode.
        """
        if self.config.level == "episode":
            raise ConfigError("gspo with level='episode' has a ratio of its own: leave the modifier of ratios out.")
        return super().with_ratio(level)
