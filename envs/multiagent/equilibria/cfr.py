"""Counterfactual regret minimisation over the whole tree: CFR, CFR+ and discounted CFR."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.equilibria.tree import Floats, GameTree


class Variant(NamedTuple):
    """Weights of iteration t in the sums of regrets and of policies.

    Args:
        floors: Whether negative sums of regrets become 0 after every iteration.
        averaging: Exponent of t in the weight of the policy of iteration t.
        discounts: Exponents a and b: after iteration t, positive sums of regrets are multiplied by t^a / (t^a + 1) and
            negative ones by t^b / (t^b + 1). None for no discounts.
    """

    floors: bool = False
    averaging: float = 0.0
    discounts: tuple[float, float] | None = None


VARIANTS = {
    "cfr": Variant(),
    "cfr+": Variant(floors=True, averaging=1.0),
    "dcfr": Variant(averaging=2.0, discounts=(1.5, 0.0)),
}
"""CFR (Zinkevich et al. 2007), CFR+ (Tammelin 2014) and discounted CFR (Brown and Sandholm 2019)."""


@dataclass(slots=True, eq=False)
class CFR:
    """Counterfactual regret minimisation; seats are updated in turn within an iteration.

    In two-player zero-sum games the average policy approaches an equilibrium. The last policy need not.

    Args:
        tree: The game.
        variant: A value of :data:`VARIANTS`.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> solver = CFR(tree, VARIANTS["cfr+"])
    >>> for _ in range(100):
    ...     solver.step()
    >>> result = evaluate_policy(tree, solver.average())
    >>> round(result.exploitability, 4), round(result.values[0], 3)
    (0.0012, -0.056)
    """

    tree: GameTree
    variant: Variant = VARIANTS["cfr"]
    regrets: Floats = field(init=False)
    weights: Floats = field(init=False)
    iteration: int = 0

    def __post_init__(self) -> None:
        self.regrets, self.weights = np.zeros(self.tree.size), np.zeros(self.tree.size)

    def policy(self) -> Floats:
        """Return the present policy: proportional to positive regrets."""
        return self.tree.normalised(np.maximum(self.regrets, 0.0))

    def average(self) -> Floats:
        """Return the average policy."""
        return self.tree.normalised(self.weights)

    def step(self) -> None:
        """Run one iteration."""
        self.iteration += 1
        tree, variant = self.tree, self.variant
        for seat, own in enumerate(tree.entries):
            policy = self.policy()
            self.regrets += tree.advantages(policy, seat)
            reach = tree.reach_of(policy, seat)[tree.node_of[own]]
            self.weights[own] += self.iteration**variant.averaging * reach * policy[own]
            if variant.floors:
                np.maximum(self.regrets, 0.0, out=self.regrets)
            if variant.discounts is not None:
                positive, negative = (self.iteration**power for power in variant.discounts)
                regrets = self.regrets[own]
                shares = np.where(regrets > 0, positive / (positive + 1), negative / (negative + 1))
                self.regrets[own] = regrets * shares
