"""Games sampled from a game tree, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from turngym.envs.multiagent.equilibria import GameTree
from turngym.envs.multiagent.equilibria.tree import Floats, Ints


class Moves(NamedTuple):
    """Moves of sampled games.

    Args:
        slots: [moves] policy entry of the action.
        kinds: [moves] number of the policy that made the move.
        following: [moves] information set of the seat's next move in the game; -1 if there is none.
        payoffs: [moves] return of the seat where there is no next move, else 0.
    """

    slots: Ints
    kinds: Ints
    following: Ints
    payoffs: Floats


class SampledGames:
    """Samples games from a tree.

    Args:
        tree: The game.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import game_tree
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> games = SampledGames(tree)
    >>> moves = games.play(tree.uniform()[None], np.zeros((100, 2), int), np.random.default_rng(0))
    >>> 200 <= len(moves.slots) <= 300, int((moves.following < 0).sum()), float(moves.payoffs.sum())
    (True, 200, 0.0)
    """

    def __init__(self, tree: GameTree) -> None:
        self._tree, size = tree, len(tree.parent)
        self._first, self._count = np.zeros(size, int), np.zeros(size, int)
        for (parents, starts), (low, high) in zip(tree.families, tree.levels, strict=True):
            self._first[parents], self._count[parents] = low + starts, np.diff(starts, append=high - low)

    def play(self, policies: Floats, kinds: Ints, random: np.random.Generator) -> Moves:
        """Sample games.

        Args:
            policies: [kinds, entries] policies.
            kinds: [games, seats] number of the policy that plays each seat.
            random: Draws actions and chance.
        """
        tree, (games, seats) = self._tree, kinds.shape
        bounds = np.cumsum([tree.edges(policy) for policy in policies])
        kinds = np.column_stack([kinds, np.zeros(games, int)])
        nodes, last, running = np.zeros(games, int), np.full((games, seats), -1), np.arange(games)
        slots, made_by, following = (np.zeros(0, int) for _ in range(3))
        while (running := running[self._count[nodes[running]] > 0]).size:
            first, mover = self._first[nodes[running]], tree.mover[self._first[nodes[running]]]
            start = first + kinds[running, mover] * len(tree.parent)
            end = start + self._count[nodes[running]]
            low, high = bounds[start - 1], bounds[end - 1]
            drawn = np.searchsorted(bounds, low + random.random(len(running)) * (high - low), side="right")
            nodes[running] = first + np.minimum(drawn, end - 1) - start
            moved = running[mover < seats]
            by, slot = mover[mover < seats], tree.slot[nodes[moved]]
            earlier = last[moved, by]
            following[earlier[earlier >= 0]] = tree.set_of[slot[earlier >= 0]]
            last[moved, by] = len(slots) + np.arange(len(moved))
            slots, made_by = np.append(slots, slot), np.append(made_by, kinds[moved, by])
            following = np.append(following, np.full(len(moved), -1))
        payoffs = np.zeros(len(slots))
        for seat, moves in enumerate(last.T):
            payoffs[moves[moves >= 0]] = tree.payoff[nodes[moves >= 0], seat]
        return Moves(slots, made_by, following, payoffs)
