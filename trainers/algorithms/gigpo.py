"""GiGPO: group-in-group policy optimisation (Feng et al. 2025, arXiv 2505.10978).

The advantage of a turn has two parts: its episode among those of the group, and its discounted return among those of
all turns of the group that start from the same anchor state, whichever episode they belong to.
The penalty of an invalid action is subtracted from the sum of both; the released code puts it into what is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedMethod, one_of, within
from turngym.trainers.algorithms.grpo import GroupConfig, episode_advantages, group_credit
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable
from turngym.wrappers.observations.anchor import cluster

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Mode: TypeAlias = Literal["mean_norm", "mean_std_norm"]


@dataclass(frozen=True)
class GiGPOConfig(GroupConfig):
    """Settings of GiGPO."""

    kl_coef: float = 0.01
    """Weight of the KL to the reference policy; above 0 a frozen copy of the policy is kept."""
    invalid_penalty: float = 0.1
    """Penalty for an invalid action."""
    omega: float = 1.0
    """Weight of the step advantage relative to the episode advantage."""
    gamma: float = 0.95
    """Discount per turn of the returns compared between turns of the same anchor."""
    mode: Mode = "mean_std_norm"
    """Divide both parts by their standard deviation, or only centre them."""
    anchor_similarity: float = 1.0
    """Minimum similarity, in (0, 1], of anchors treated as equal; 1 requires equal anchors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("omega", self.omega, 0)
        within("gamma", self.gamma, 0, 1)
        one_of("mode", self.mode, get_args(Mode))
        within("anchor_similarity", self.anchor_similarity, 1e-9, 1)


def step_returns(table: TurnTable, *, gamma: float) -> Float[Tensor, "turn"]:
    """Return the discounted return of each turn, before any penalty."""
    return table.unpad(F.discounted_returns(table.pad(table.reward), table.turn_mask(), gamma=gamma))


def similar_anchors(table: TurnTable, threshold: float) -> Int[Tensor, "turn"]:
    """Return dense keys of the anchors, equal for turns of one group whose anchors are similar.

    The turns of each group are walked through in the order of the table: a turn joins the first cluster whose first
    anchor is similar enough, or opens a new one.
    """
    keys = torch.zeros(table.num_turns, dtype=torch.long)
    for group in torch.unique(table.group):
        turns = torch.nonzero(table.group == group).flatten()
        firsts = cluster([table.anchor_text[turn] for turn in turns.tolist()], threshold)
        keys[turns] = turns[torch.tensor(firsts)]
    dense: Tensor = torch.unique(keys, return_inverse=True)[1]
    return dense


@ALGORITHMS.register("gigpo")
class GiGPO(ClippedMethod[GiGPOConfig]):
    """Group-in-group policy optimisation."""

    Config: ClassVar[type[GiGPOConfig]] = GiGPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups and anchors, and what the loss needs."""
        return super().needs | {Need.GROUPS, Need.ANCHORS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the episode advantage plus ``omega`` times the step advantage of its turn."""
        config, scale = self.config, self.config.mode == "mean_std_norm"
        returns = step_returns(table, gamma=config.gamma)
        is_exact = config.anchor_similarity == 1
        anchors = table.anchor if is_exact else similar_anchors(table, config.anchor_similarity)
        steps = F.group_advantages(
            returns, anchors, scale_by_std=scale, ddof=config.ddof, epsilon=config.epsilon, singleton="zero"
        )
        episodes = episode_advantages(table, config, scale_by_std=scale)
        credit = group_credit(table, episodes + config.omega * steps, config)
        sizes = torch.bincount(anchors)[anchors]
        compared = float((sizes > 1).to(torch.float64).mean()) if len(sizes) else 0.0
        return Credit(credit.advantages, metrics={**credit.metrics, "turns_with_shared_anchor": compared})
