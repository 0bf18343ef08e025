"""GRPO: group-relative policy optimisation (Shao et al. 2024, arXiv 2402.03300), and Dr. GRPO without the division.

The advantage of an episode is its return among those of its group, and every turn carries that of its episode. The
penalty of an invalid action is subtracted from the advantage of its own turn. It never enters the mean and the
deviation of the group, where it would credit the other turns of the group for what one of them got wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, one_of, within
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Over: TypeAlias = Literal["trajectories", "rows"]


@dataclass(frozen=True)
class OutcomeConfig(ClippedConfig):
    """Settings of methods that compare an episode's return with those of its group."""

    singleton: F.Singleton = "zero"
    """Advantage of a group reduced to one episode: zero, or its raw score as in verl."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("singleton", self.singleton, get_args(F.Singleton))


OutcomeConfigT = TypeVar("OutcomeConfigT", bound=OutcomeConfig)


@dataclass(frozen=True)
class GroupConfig(OutcomeConfig):
    """Settings of methods that compare the episodes of a group by its mean and deviation."""

    over: Over = "trajectories"
    """Unit of the group's mean and standard deviation: a trajectory (by its first turn), or a turn, so that long
    trajectories weigh more."""
    ddof: int = 1
    """1 for the sample standard deviation, 0 for the population's."""
    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("over", self.over, get_args(Over))
        within("epsilon", self.epsilon, 0)
        within("ddof", self.ddof, 0, 1)


@dataclass(frozen=True)
class GRPOConfig(GroupConfig):
    """Settings of GRPO."""

    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    kl_coef: float = 0.04
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    scale_by_std: bool = True
    """True if the advantage is divided by the group's standard deviation; False is Dr. GRPO."""


class OutcomeMethod(ClippedMethod[OutcomeConfigT]):
    """A method that compares an episode's return with those of its group."""

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, and what the loss needs."""
        return super().needs | {Need.GROUPS}


def episode_advantages(table: TurnTable, config: GroupConfig, *, scale_by_std: bool) -> Float[Tensor, "turn"]:
    """Return the advantage of each turn's episode in its group, before any penalty."""
    return F.group_advantages(
        table.episode_return()[table.episode],
        table.group,
        table.turn == 0 if config.over == "trajectories" else None,
        scale_by_std=scale_by_std,
        ddof=config.ddof,
        epsilon=config.epsilon,
        singleton=config.singleton,
    )


def compared_turns(table: TurnTable, config: OutcomeConfig) -> Bool[Tensor, "turn"]:
    """Return which turns have an advantage: those of groups with several episodes, or all if ``singleton`` is raw."""
    if config.singleton == "raw":
        return torch.ones_like(table.is_valid)
    return torch.bincount(table.episode_group)[table.group] > 1


def group_credit(table: TurnTable, advantages: Float[Tensor, "turn"], config: OutcomeConfig) -> Credit:
    """Return the credit of tokens from the advantages of turns, with the metrics of group methods.

    Each turn loses the penalty of its own invalid action. Where a group has one episode the credit is 0.

    Args:
        table: The batch.
        advantages: Advantage of each turn before any penalty.
        config: Settings of the method.
    """
    groups = table.episode_group
    members = torch.bincount(groups)
    penalised = advantages - table.invalid_penalties(config.invalid_penalty)
    advantages = penalised.masked_fill(~compared_turns(table, config), 0.0)
    returns = table.episode_return()
    deviations = F.group_statistics(returns, groups, len(members), ddof=0).std
    compared = members > 1
    metrics = {
        "groups_shrunk_to_one": float((members == 1).sum()),
        "groups_with_equal_returns": float((compared & (deviations == 0)).sum()) / max(int(compared.sum()), 1),
    }
    return Credit(table.to_tokens(advantages), metrics=metrics)


@ALGORITHMS.register("grpo")
class GRPO(OutcomeMethod[GRPOConfig]):
    """Group-relative policy optimisation."""

    Config: ClassVar[type[GRPOConfig]] = GRPOConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its episode's advantage in the group."""
        turns = episode_advantages(table, self.config, scale_by_std=self.config.scale_by_std)
        return group_credit(table, turns, self.config)
