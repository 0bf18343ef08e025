"""Methods of the laboratory itself: a registered method without the part that is under test."""

from __future__ import annotations

from turngym.trainers import functional as F
from turngym.trainers.algorithms.reinforce import Reinforce
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable


class PlainReinforce(Reinforce):
    """REINFORCE on discounted returns as they are: no baseline and no normalisation."""

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token its turn's discounted return."""
        rewards = table.pad(self.penalised_rewards(table))
        returns = F.discounted_returns(rewards, table.turn_mask(), gamma=self.config.gamma)
        return Credit(table.to_tokens(table.unpad(returns)))
