"""A training method: plain returns, discounted, without a baseline."""

from dataclasses import dataclass
from typing import ClassVar

from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, within
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class PlainConfig(ClippedConfig):
    """Settings of plain returns."""

    gamma: float = 0.5
    """Discount per turn."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0, 1)


@ALGORITHMS.register("sample_plain")
class Plain(ClippedMethod[PlainConfig]):
    """Discounted returns without a baseline."""

    Config: ClassVar[type[PlainConfig]] = PlainConfig

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's discounted return."""
        rewards = table.pad(self.penalised_rewards(table))
        returns = F.discounted_returns(rewards, table.turn_mask(), gamma=self.config.gamma)
        return Credit(table.to_tokens(table.unpad(returns)))
