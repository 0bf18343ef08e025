"""Double oracle, the exact form of policy-space response oracles (PSRO), for two-player zero-sum games."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from turngym.envs.multiagent.equilibria.evaluation import best_response
from turngym.envs.multiagent.equilibria.tree import Floats, GameTree
from turngym.errors import ConfigError

TOLERANCE = 1e-9
"""Gain of a best response that counts as none, relative to the range of payoffs, and entries of a tableau that count
as 0."""
_PIVOTS = 20
"""Pivots by the largest coefficient for each row and column of a matrix."""


def matrix_equilibrium(payoffs: Floats) -> tuple[Floats, Floats, float]:
    """Return an equilibrium of a zero-sum matrix game: both mixed strategies, and its value to the row player.

    The simplex method solves the linear program of the column player, whose dual is that of the row player (Dantzig
    1951): with all payoffs positive, maximise the sum of y >= 0 subject to payoffs @ y <= 1. After many pivots it takes
    Bland's rule, which cannot cycle. Payoffs whose range is below 0.1 or above 10 are divided by it first.

    Args:
        payoffs: [rows, columns] payoffs of the row player.

    >>> rows, columns, value = matrix_equilibrium(np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]]))
    >>> rows.round(6).tolist(), abs(round(value, 6))
    ([0.25, 0.5, 0.25], 0.0)
    """
    count, number = payoffs.shape
    least = float(payoffs.min())
    spread = float(payoffs.max()) - least
    scale = 1.0 if spread == 0 or 0.1 <= spread <= 10 else spread
    tableau = np.zeros((count + 1, number + count + 1))
    tableau[:count, :number], tableau[:count, -1] = (payoffs - least) / scale + 1.0, 1.0
    tableau[:count, number:-1] = np.eye(count)
    tableau[count, :number] = -1.0
    basis = np.arange(number, number + count)
    pivots = 0
    while (candidates := np.flatnonzero(tableau[count, :-1] < -TOLERANCE)).size:
        pivots += 1
        enters = candidates[0] if pivots > _PIVOTS * (count + number) else int(np.argmin(tableau[count, :-1]))
        column = tableau[:count, enters]
        ratios = np.full(count, np.inf)
        np.divide(tableau[:count, -1], column, out=ratios, where=column > TOLERANCE)
        ties = np.flatnonzero(ratios <= ratios.min() + TOLERANCE * TOLERANCE)
        leaves = ties[np.argmin(basis[ties])]
        tableau[leaves] /= tableau[leaves, enters]
        others = np.arange(count + 1) != leaves
        tableau[others] -= np.outer(tableau[others, enters], tableau[leaves])
        basis[leaves] = enters
    total = float(tableau[count, -1])
    solution = np.zeros(number + count)
    solution[basis] = tableau[:count, -1]
    rows, columns = (np.maximum(each, 0.0) for each in (tableau[count, number:-1], solution[:number]))
    return rows / rows.sum(), columns / columns.sum(), (1.0 / total - 1.0) * scale + least


@dataclass(slots=True, eq=False)
class DoubleOracle:
    """Double oracle (McMahan et al. 2003): PSRO (Lanctot et al. 2017) with exact best responses and equilibria.

    Each seat has a population of policies, at first the uniform one. An iteration solves the matrix game between the
    populations and adds a best response to the other seat's mixture. Once neither gains anything, the mixtures are an
    equilibrium of the whole game, and iterations change nothing.

    Args:
        tree: The game.

    Raises:
        ConfigError: The game has more or less than two seats, or is not zero-sum.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
    >>> solver = DoubleOracle(game_tree(make_game("turngym/KuhnPoker-v0")))
    >>> for _ in range(20):
    ...     solver.step()
    >>> result = evaluate_policy(solver.tree, solver.average())
    >>> result.exploitability < 1e-9, round(result.values[0], 6)
    (True, -0.055556)
    """

    tree: GameTree
    populations: tuple[list[Floats], list[Floats]] = field(init=False)
    """Policies of each seat; a policy has entries for the other seat too, which are not used."""
    payoffs: Floats = field(init=False)
    """[policies of seat 0, policies of seat 1] expected returns of seat 0."""
    is_solved: bool = False
    _least_gain: float = field(init=False)
    _reaches: tuple[list[Floats], list[Floats]] = field(init=False)

    def __post_init__(self) -> None:
        tree = self.tree
        self._least_gain = TOLERANCE * float(np.ptp(tree.payoff))
        if len(tree.seats) != 2 or float(np.abs(tree.payoff.sum(axis=1)).max()) > self._least_gain:
            raise ConfigError(
                f"psro solves zero-sum games of two seats, and {tree.name} is none: take fictitious or cfr+."
            )
        self.populations, self._reaches, self.payoffs = ([], []), ([], []), np.zeros((0, 0))
        for seat in (0, 1):
            self._add(seat, tree.uniform())

    def _add(self, seat: int, policy: Floats) -> None:
        """Add a policy of a seat, and what it earns against those of the other seat."""
        tree = self.tree
        reach = tree.reach_of(policy, seat)
        self.populations[seat].append(policy)
        self._reaches[seat].append(reach)
        ends = tree.payoff[:, 0] * tree.reach(np.where(tree.mover == len(tree.seats), tree.chance, 1.0))
        earned = np.array([float(np.sum(ends * reach * other)) for other in self._reaches[1 - seat]])
        shape = len(self.populations[0]), len(self.populations[1])
        if 0 in shape:
            return
        grown = np.zeros(shape)
        rows, columns = self.payoffs.shape
        grown[:rows, :columns] = self.payoffs
        grown[(-1, slice(None)) if seat == 0 else (slice(None), -1)] = earned
        self.payoffs = grown

    def average(self) -> Floats:
        """Return the policy that plays as the mixture of each seat's population does."""
        return self._mixed(matrix_equilibrium(self.payoffs)[:2])

    def _mixed(self, mixtures: tuple[Floats, Floats]) -> Floats:
        tree, found = self.tree, self.tree.uniform()
        for seat, mixture in enumerate(mixtures):
            own, weights = tree.entries[seat], np.zeros(tree.size)
            for share, policy, reach in zip(mixture, self.populations[seat], self._reaches[seat], strict=True):
                weights[own] += share * reach[tree.node_of[own]] * policy[own]
            found[own] = tree.normalised(weights)[own]
        return found

    def step(self) -> None:
        """Add a best response of each seat that gains by it."""
        if self.is_solved:
            return
        rows, columns, value = matrix_equilibrium(self.payoffs)
        average = self._mixed((rows, columns))
        answers = [best_response(self.tree, average, seat) for seat in (0, 1)]
        gaining = [seat for seat, own in ((0, value), (1, -value)) if answers[seat][0] > own + self._least_gain]
        for seat in gaining:
            self._add(seat, answers[seat][1])
        self.is_solved = not gaining
