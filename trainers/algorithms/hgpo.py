"""HGPO: hierarchy-of-groups policy optimisation (ICLR 2026, arXiv 2602.22817).

GiGPO compares the turns of a group that start from the same anchor state, though what came before may differ. Here a
turn is compared once for each length of shared history, and longer ones weigh more:

    level k    turns of the group whose last k anchors, the current one included, are equal
    a_k        the discounted return of the turn among those of its level
    A          sum of (k + offset)^alpha * a_k over the sum of those weights

Levels in which a turn is alone, or in which it returned exactly the mean, are left out; a turn without any gets 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, within
from turngym.trainers.algorithms.gigpo import Mode, step_returns
from turngym.trainers.algorithms.grpo import GroupConfig, OutcomeMethod, Over, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True)
class HGPOConfig(GroupConfig):
    """Settings of HGPO."""

    kl_coef: float = 0.01
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    invalid_penalty: float = 0.1
    """Penalty for an invalid action."""
    over: Over = "rows"
    """Unit of mean and standard deviation of the base group: a trajectory, or a turn, as in the released code."""
    history: int = 2
    """Maximum number of earlier anchors shared with other turns; 0 compares by the current anchor only."""
    alpha: float = 1.0
    """Exponent of the weight of longer histories: 0 for equal weights."""
    weight_offset: int = 1
    """1 weighs histories of 1, 2, 3 anchors by 2, 3, 4 as the released code does; 0 by 1, 2, 3 as the paper does."""
    gamma: float = 0.95
    """Discount per turn of the returns that are compared."""
    mode: Mode = "mean_std_norm"
    """Whether advantages are divided by the standard deviation of their level or only centred."""
    base_group: bool = False
    """True if the episode among those of its group joins as level 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("history", self.history, 0)
        within("alpha", self.alpha, 0)
        within("weight_offset", self.weight_offset, 0, 1)
        within("gamma", self.gamma, 0, 1)
        one_of("mode", self.mode, get_args(Mode))


def history_keys(table: TurnTable, depth: int) -> list[Int[Tensor, "turn"]]:
    """Return for each length of history up to ``depth`` the keys of turns, equal where that many anchors are equal.

    The first entry is about the current anchor alone. A turn with too little history has the key -1.
    """
    keys = [table.anchor]
    for length in range(2, depth + 1):
        longer = torch.full_like(table.anchor, -1)
        long = torch.nonzero(table.turn >= length - 1).flatten()
        longer[long] = F.joint_keys(keys[-1][long - 1], table.anchor[long])
        keys.append(longer)
    return keys


def _level_advantages(
    returns: Float[Tensor, "turn"], keys: Int[Tensor, "turn"], *, scale_by_std: bool, epsilon: float
) -> Float[Tensor, "turn"]:
    """Return each turn's return among those of its key, 0 if the key is negative or not shared."""
    found = torch.zeros_like(returns)
    here = keys >= 0
    dense = torch.unique(keys[here], return_inverse=True)[1]
    found[here] = F.group_advantages(returns[here], dense, scale_by_std=scale_by_std, ddof=0, epsilon=epsilon)
    return found


@ALGORITHMS.register("hgpo")
class HGPO(OutcomeMethod[HGPOConfig]):
    """Hierarchy-of-groups policy optimisation."""

    Config: ClassVar[type[HGPOConfig]] = HGPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups and anchors, and what the loss needs."""
        return super().needs | {Need.ANCHORS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the weighted mean of its turn's advantages over lengths of history."""
        config, scale = self.config, self.config.mode == "mean_std_norm"
        returns = step_returns(table, gamma=config.gamma)
        levels = [
            _level_advantages(returns, keys, scale_by_std=scale, epsilon=config.epsilon)
            for keys in history_keys(table, config.history + 1)
        ]
        weights = [(k + config.weight_offset) ** config.alpha for k in range(1, len(levels) + 1)]
        if config.base_group:
            levels.append(episode_advantages(table, config, scale_by_std=scale))
            weights.append(1.0)
        items = torch.stack(levels)
        used = (items != 0) * torch.tensor(weights, dtype=items.dtype)[:, None]
        total = used.sum(0)
        blended = (used * items).sum(0) / torch.where(total > 0, total + config.epsilon, 1.0)
        credit = group_credit(table, blended, config)
        counts = (items != 0).sum(0).to(items.dtype)
        metrics = {"levels_per_turn": float(counts.mean()) if len(counts) else 0.0}
        return Credit(credit.advantages, metrics={**credit.metrics, **metrics})
