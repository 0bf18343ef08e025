"""Fictitious play in extensive form: best responses to the average policy, averaged."""

from __future__ import annotations

from dataclasses import dataclass, field

from turngym.envs.multiagent.equilibria.evaluation import best_response
from turngym.envs.multiagent.equilibria.tree import Floats, GameTree


@dataclass(slots=True, eq=False)
class FictitiousPlay:
    """Extensive-form fictitious play (Heinrich et al. 2015); all seats respond to the same average.

    Best responses are averaged by the probability that they play to each information set. The first policy is uniform.

    Args:
        tree: The game.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
    >>> solver = FictitiousPlay(game_tree(make_game("turngym/KuhnPoker-v0")))
    >>> for _ in range(100):
    ...     solver.step()
    >>> round(evaluate_policy(solver.tree, solver.average()).exploitability, 2)
    0.02
    """

    tree: GameTree
    weights: Floats = field(init=False)

    def __post_init__(self) -> None:
        uniform = self.tree.uniform()
        self.weights = self._weighted([uniform] * len(self.tree.seats))

    def average(self) -> Floats:
        """Return the average policy."""
        return self.tree.normalised(self.weights)

    def step(self) -> None:
        """Add a best response of each seat to the average."""
        average = self.average()
        self.weights += self._weighted(
            [best_response(self.tree, average, seat)[1] for seat in range(len(self.tree.seats))]
        )

    def _weighted(self, policies: list[Floats]) -> Floats:
        """Return each seat's policy times the probability that it plays to the information set."""
        found = self.tree.uniform()
        for seat, (policy, own) in enumerate(zip(policies, self.tree.entries, strict=True)):
            found[own] = self.tree.reach_of(policy, seat)[self.tree.node_of[own]] * policy[own]
        return found
