"""InfoPO: credit for actions whose feedback changes what the policy does next (arXiv 2603.00656).

Information-driven policy optimisation. The gain of a turn is the mean over the tokens of the next one of

    log p(token | prompt with the feedback) - log p(token | prompt with a placeholder in its place)

normalised over the turns of the group. It is added to the advantage of the outcome where the outcomes of the group are
alike, and fades where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.agents.trajectory import Turn
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import required, within
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class InfoPOConfig(GroupConfig):
    """Settings of InfoPO."""

    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    beta: float = 0.5
    """Weight of the information gain before its gate, which is at most one half."""
    temperature: float = 0.5
    """Deviation of a group's returns at which the gate is sigmoid(-1)."""
    placeholder: str = "(no information)"
    """Text in place of the feedback."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("beta", self.beta, 0)
        within("temperature", self.temperature, 1e-6)
        if not self.placeholder.strip():
            raise ConfigError(f"placeholder must be a string that is not blank, got {self.placeholder!r}.")


def information_gains(gaps: Tensor, table: TurnTable) -> Tensor:
    """Return [turns] the mean gap over the tokens of each one's next turn; nan for last turns and where it is unknown.

    Args:
        gaps: [tokens] Log-probability with the feedback less that without it, nan where it is unknown.
        table: The batch.
    """
    known = ~gaps.isnan()
    counts, sums = (
        torch.zeros(table.num_turns, dtype=gaps.dtype).index_add_(0, table.token_turn, column)
        for column in (known.to(gaps), gaps.nan_to_num(0.0))
    )
    means = torch.where(counts > 0, sums / counts.clamp_min(1), float("nan"))
    gains = torch.full_like(means, float("nan"))
    gains[:-1] = torch.where(table.episode[1:] == table.episode[:-1], means[1:], float("nan"))
    return gains


@ALGORITHMS.register("infopo")
class InfoPO(OutcomeMethod[InfoPOConfig]):
    """Group-relative policy optimisation with credit for what feedback changes."""

    Config: ClassVar[type[InfoPOConfig]] = InfoPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, a pass behind prompts without feedback if its gain has a weight, and what the loss needs."""
        informed = {Need.OTHER_PROMPTS, Need.OLD_LOGPROBS} if self.config.beta > 0 else set()
        return super().needs | informed

    def other_observation(self, turn: Turn) -> str | None:
        """Return the placeholder."""
        return self.config.placeholder

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group, and the gated gain of its turn."""
        config = self.config
        advantages = episode_advantages(table, config, scale_by_std=True)
        if config.beta == 0:
            return group_credit(table, advantages, config)
        other = required(table.token_other_logprob, "token_other_logprob")
        gains = information_gains((table.token_old_logprob - other).to(table.reward.dtype), table)
        known = ~gains.isnan()
        normalised = torch.zeros_like(gains)
        members = table.group[known].unique(return_inverse=True)[1]
        normalised[known] = F.group_advantages(
            gains[known], members, scale_by_std=True, ddof=config.ddof, epsilon=config.epsilon
        )
        deviations = F.group_statistics(
            table.episode_return(),
            table.episode_group,
            int(table.group.max()) + 1 if table.num_turns else 0,
            ddof=config.ddof,
        ).std
        gates = torch.sigmoid(-deviations.nan_to_num(0.0) / config.temperature)
        credit = group_credit(table, advantages + config.beta * gates[table.group] * normalised, config)
        metrics = {
            "information_gain": float(gains[known].mean()) if bool(known.any()) else 0.0,
            "information_known": float(known.double().mean()) if len(known) else 0.0,
            "information_gate": float(gates.mean()) if len(gates) else 0.0,
        }
        return replace(credit, metrics={**credit.metrics, **metrics})
