"""Players of Kuhn poker."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.tablegames.kuhn_poker.rules import check_policy, equilibrium


class PolicyPlayer(Player):
    """Plays a table of probabilities in every hand.

    Args:
        policy: Information set -> action -> probability, for all twelve information sets.

    Raises:
        ConfigError: The table has a hole, or one of its distributions does not add up to 1.
    """

    def __init__(self, policy: Mapping[str, Mapping[str, float]]) -> None:
        check_policy(policy)
        self.policy = policy

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Sample an action at the information set."""
        chances = self.policy[view.anchor.partition(";")[0]]
        left = self._random() * float_sum(chances.values())
        for action, chance in chances.items():
            left -= chance
            if left < 0:
                return action
        return max(chances, key=chances.__getitem__)


class EquilibriumPlayer(PolicyPlayer):
    """Cannot be exploited: on average it wins at least the game's value against any opponent.

    Args:
        alpha: The probability with which the first seat bets the jack, in [0, 1/3].
    """

    name = "equilibrium"

    def __init__(self, alpha: float = 1 / 6) -> None:
        super().__init__(equilibrium(alpha))
