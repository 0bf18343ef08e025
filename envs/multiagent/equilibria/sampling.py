"""Monte Carlo counterfactual regret minimisation: external and outcome sampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.equilibria.tree import Floats, GameTree

_BATCH = 4096


@dataclass(slots=True, eq=False)
class MonteCarloCFR:
    """CFR on sampled parts of the tree (Lanctot et al. 2009); one walk per seat and iteration.

    External sampling samples chance and the other seats and takes every action of the seat. Outcome sampling plays one
    game, in which the seat explores.

    Args:
        tree: The game.
        sampling: Kind of sampling.
        seed: Seed of the samples.
        exploration: Probability with which outcome sampling draws the seat's action uniformly.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> solver = MonteCarloCFR(tree, "external")
    >>> for _ in range(500):
    ...     solver.step()
    >>> evaluate_policy(tree, solver.average()).exploitability < 0.1
    True
    """

    tree: GameTree
    sampling: Literal["external", "outcome"] = "external"
    seed: int = 0
    exploration: float = 0.6
    iteration: int = 0
    _regrets: list[list[float]] = field(init=False)
    _weights: list[list[float]] = field(init=False)
    _children: list[list[int]] = field(init=False)
    _chances: list[list[float]] = field(init=False)
    _set: list[int] = field(init=False)
    _random: np.random.Generator = field(init=False)
    _drawn: list[float] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        tree = self.tree
        self._random = np.random.default_rng(self.seed)
        self._regrets = [[0.0] * len(each.actions) for each in tree.sets]
        self._weights = [[0.0] * len(each.actions) for each in tree.sets]
        self._children = [[] for _ in tree.parent]
        self._chances = [[] for _ in tree.parent]
        self._set = [-1] * len(tree.parent)
        for node, (parent, slot, chance) in enumerate(
            zip(tree.parent.tolist(), tree.slot.tolist(), tree.chance.tolist(), strict=True)
        ):
            if node:
                self._children[parent].append(node)
                self._chances[parent].append(chance)
                self._set[parent] = int(tree.set_of[slot]) if slot >= 0 else -1

    def average(self) -> Floats:
        """Return the average policy."""
        return self.tree.normalised(np.array([weight for each in self._weights for weight in each]))

    def step(self) -> None:
        """Run one iteration."""
        self.iteration += 1
        for seat in range(len(self.tree.seats)):
            if self.sampling == "external":
                self._external(0, seat)
            else:
                self._outcome(0, seat, 1.0, 1.0, 1.0)

    def _draw(self, chances: list[float]) -> int:
        if not self._drawn:
            self._drawn = self._random.random(_BATCH).tolist()
        left = self._drawn.pop()
        for index, chance in enumerate(chances):
            left -= chance
            if left < 0:
                return index
        return max(range(len(chances)), key=chances.__getitem__)

    def _policy(self, number: int) -> list[float]:
        positive = [max(regret, 0.0) for regret in self._regrets[number]]
        total = float_sum(positive)
        return [each / total for each in positive] if total > 0 else [1 / len(positive)] * len(positive)

    def _external(self, node: int, seat: int) -> float:
        """Return the sampled value of a history."""
        children, number = self._children[node], self._set[node]
        if not children:
            return float(self.tree.payoff[node, seat])
        if number < 0:
            return self._external(children[self._draw(self._chances[node])], seat)
        policy = self._policy(number)
        if self.tree.sets[number].seat != seat:
            self._keep_policy(number, policy)
            return self._external(children[self._draw(policy)], seat)
        values = [self._external(child, seat) for child in children]
        mean = _dot(policy, values)
        self._keep_regrets(number, [value - mean for value in values])
        return mean

    def _keep_regrets(self, number: int, regrets: list[float]) -> None:
        _add(self._regrets[number], regrets)

    def _keep_policy(self, number: int, policy: list[float]) -> None:
        _add(self._weights[number], policy)

    def _outcome(self, node: int, seat: int, own: float, others: float, sampled: float) -> float:
        """Return an unbiased estimate of the value of a history.

        Args:
            node: The history.
            seat: The seat whose regrets are updated.
            own: Probability that the seat plays to here.
            others: Probability that chance and the others do.
            sampled: Probability that the walk comes to here.
        """
        children, number = self._children[node], self._set[node]
        if not children:
            return float(self.tree.payoff[node, seat])
        if number < 0:
            picked = self._draw(self._chances[node])
            chance = self._chances[node][picked]
            return self._outcome(children[picked], seat, own, others * chance, sampled * chance)
        policy = self._policy(number)
        if self.tree.sets[number].seat != seat:
            picked = self._draw(policy)
            chance = policy[picked]
            return self._outcome(children[picked], seat, own, others * chance, sampled * chance)
        even = self.exploration / len(policy)
        explored = [even + (1 - self.exploration) * chance for chance in policy]
        picked = self._draw(explored)
        value = self._outcome(children[picked], seat, own * policy[picked], others, sampled * explored[picked])
        value /= explored[picked]
        mean, weight = policy[picked] * value, others / sampled
        self._keep_regrets(number, [weight * ((value if k == picked else 0.0) - mean) for k in range(len(policy))])
        self._keep_policy(number, [own / sampled * chance for chance in policy])
        return mean


def _add(total: list[float], more: list[float]) -> None:
    total[:] = [old + new for old, new in zip(total, more, strict=True)]


def _dot(first: list[float], second: list[float]) -> float:
    return float_sum(one * other for one, other in zip(first, second, strict=True))
