"""Pass@k: only the best episode of a group has an advantage, its lead over the second (repository volcengine/verl).

The gradient is that of the best of k: what the others earn does not change it, so exploring costs them nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class PassKConfig(OutcomeConfig):
    """Settings of the pass@k advantage."""

    scale_by_std: bool = True
    """True if the lead is divided by the group's sample standard deviation."""
    epsilon: float = 1e-6
    """Added to the standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("epsilon", self.epsilon, 0)


@ALGORITHMS.register("pass_k")
class PassK(OutcomeMethod[PassKConfig]):
    """Policy gradient of the best episode of a group."""

    Config: ClassVar[type[PassKConfig]] = PassKConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign the tokens of each group's best episode its lead over the second."""
        returns, groups = table.episode_return(), table.episode_group
        advantages = torch.zeros_like(returns)
        for group in groups.unique():
            members = torch.nonzero(groups == group).flatten()
            if len(members) > 1:
                (best, second), order = returns[members].topk(2)
                advantages[members[order[0]]] = best - second
            elif self.config.singleton == "raw":
                advantages[members] = returns[members]
        if self.config.scale_by_std and len(groups):
            std, size = F.group_statistics(returns, groups, int(groups.max()) + 1, ddof=1)[1:]
            divisor = torch.where(size > 1, std + self.config.epsilon, torch.ones_like(std))[groups]
            advantages = torch.where(advantages != 0, advantages / divisor, advantages)
        return group_credit(table, advantages[table.episode], self.config)
