"""Exact values, best responses and exploitability of policies in small games."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.equilibria.tree import Floats, GameTree


class Evaluation(NamedTuple):
    """Strength of a policy that plays all seats.

    Args:
        values: Expected return of each seat.
        best: Expected return of a best response of each seat to the others.

    In a two-player zero-sum game the value of the game for the first seat is between ``-best[1]`` and ``best[0]``.
    """

    values: tuple[float, ...]
    best: tuple[float, ...]

    @property
    def nash_conv(self) -> float:
        """Sum of what each seat gains by a best response; 0 for an equilibrium alone."""
        return float_sum(best - value for best, value in zip(self.best, self.values, strict=True))

    @property
    def exploitability(self) -> float:
        """Mean of what each seat gains by a best response."""
        return self.nash_conv / len(self.best)


def best_response(tree: GameTree, policy: Floats, seat: int) -> tuple[float, Floats]:
    """Return the value of a best response of one seat, and the policy in which that seat plays it.

    Args:
        tree: The game.
        policy: Policy of the other seats.
        seat: The seat that responds.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria.tree import game_tree
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> value, response = best_response(tree, tree.uniform(), 0)
    >>> round(value, 6), tree.table(response)["player_0"]["K check bet"]
    (0.5, {'fold': 0.0, 'call': 1.0})
    """
    response, nodes = policy.copy(), tree.own[seat]
    weights = tree.reach_without(policy, seat)[tree.parent[nodes]]
    own = [each for each in tree.sets if each.seat == seat]
    for depth in range(max((each.depth for each in own), default=-1), -1, -1):
        worth = tree.summed(seat, tree.values(response, seat)[nodes] * weights)
        for each in own:
            if each.depth == depth:
                entries = slice(each.start, each.start + len(each.actions))
                response[entries] = 0.0
                response[each.start + int(np.argmax(worth[entries]))] = 1.0
    return float(tree.values(response, seat)[0]), response


def evaluate_policy(tree: GameTree, policy: Floats) -> Evaluation:
    """Return the values of a policy and of the best responses to it.

    Args:
        tree: The game.
        policy: Policy of all seats.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria.tree import game_tree
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> result = evaluate_policy(tree, tree.uniform())
    >>> round(result.exploitability, 6), round(result.values[0], 6)
    (0.458333, 0.125)
    """
    seats = range(len(tree.seats))
    values = tuple(float(tree.values(policy, seat)[0]) for seat in seats)
    return Evaluation(values, tuple(best_response(tree, policy, seat)[0] for seat in seats))
