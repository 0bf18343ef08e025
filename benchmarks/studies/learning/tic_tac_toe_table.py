"""Tic-Tac-Toe with a table: 4,520 boards on which a move is due; exact results against two players.

No game is sampled to measure a policy: its chances to win and lose against the perfect player, which chooses among
equally good moves with equal chances, and what the best reply to it wins, are calculated over all boards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from tables import Played, TabularLearner

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.tablegames.tic_tac_toe import EMPTY_BOARD, after, best_cells, free_cells, is_over, winner

Chances = Callable[[str], Mapping[int, float]]
"""A board -> the probability of each cell."""


@cache
def boards() -> tuple[str, ...]:
    """Return all boards that games reach and on which a move is due."""
    found, layer = [], [EMPTY_BOARD]
    while layer:
        found += layer
        following = {after(board, cell): None for board in layer for cell in free_cells(board)}
        layer = [board for board in following if not is_over(board)]
    return tuple(found)


class TabularTicTacToe(TabularLearner):
    """A learner of Tic-Tac-Toe; see :class:`tables.TabularLearner` for its settings."""

    name = "tic-tac-toe"

    def __init__(self, algorithm: str, options: Mapping[str, Mapping[str, Any]], **settings: Any) -> None:
        legal = torch.tensor([[mark == "." for mark in board] for board in boards()])
        super().__init__(legal, algorithm, options, **settings)
        self._numbers = {board: number for number, board in enumerate(boards())}

    def policy(self, board: str) -> dict[int, float]:
        """Return the probability of each free cell."""
        row = self._rows[self._numbers[board]]
        return {cell: float(row[cell]) for cell in free_cells(board)}

    @property
    def _rows(self) -> list[list[float]]:
        rows: list[list[float]] = self.chances.tolist()
        return rows

    def play(self, generator: np.random.Generator) -> Played:
        """Play both seats of some games."""
        sums = self.chances.cumsum(-1).numpy()
        logprobs = self.logprobs().detach().tolist()
        found, cells = [], []
        for game in range(self.games):
            board = EMPTY_BOARD
            seats: tuple[list[Turn], list[Turn]] = ([], [])
            moves: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
            while not is_over(board):
                seat, number = (9 - board.count(".")) % 2, self._numbers[board]
                cell = min(int(np.searchsorted(sums[number], generator.random() * sums[number][-1], "right")), 8)
                joint = {"joint_view": f"{seat} {board}"}
                own = logprobs[number][cell]
                seats[seat].append(Turn("", board, "", completion_ids=(cell,), logprobs=(own,), columns=joint))
                moves[seat].append((number, cell))
                board = after(board, cell)
            result = {"X": 1.0, "O": -1.0, "": 0.0}[winner(board)]
            for seat, turns in enumerate(seats):
                turns[-1].reward = result if seat == 0 else -result
                spec = EpisodeSpec(2 * game + seat, 0, game)
                found.append(Trajectory(spec, "tic-tac-toe", turns=turns, terminated=True, role=f"player_{seat}"))
                cells += moves[seat]
        return Played(found, torch.tensor(cells))

    def strength(self) -> dict[str, dict[str, float]]:
        """Return side -> exact chances against the perfect and a random player, and what the best reply wins."""
        rows = dict(zip(boards(), self._rows, strict=True))

        def own(board: str) -> dict[int, float]:
            return {cell: rows[board][cell] for cell in free_cells(board)}

        found = {}
        for seat in (0, 1):
            lost = results(own, perfect, seat)[-1.0]
            against_random = results(own, evenly, seat)
            found[str(seat)] = {
                "drawn_against_perfect": 1 - lost,
                "won_against_random": against_random[1.0],
                "lost_against_random": against_random[-1.0],
                "best_reply_wins": best_reply(own, seat),
            }
        return found


def perfect(board: str) -> dict[int, float]:
    """Return the chances of the perfect player, equal among equally good moves."""
    best = best_cells(board)
    return dict.fromkeys(best, 1 / len(best))


def evenly(board: str) -> dict[int, float]:
    """Return the chances of a random player."""
    free = free_cells(board)
    return dict.fromkeys(free, 1 / len(free))


def results(policy: Chances, opponent: Chances, seat: int) -> dict[float, float]:
    """Return the probabilities of a win, 1.0, a draw and a loss, -1.0, of a policy that has a seat.

    >>> {result: round(chance, 3) for result, chance in results(evenly, evenly, 0).items()}
    {1.0: 0.585, 0.0: 0.127, -1.0: 0.288}
    """
    totals = {1.0: 0.0, 0.0: 0.0, -1.0: 0.0}
    layer = {EMPTY_BOARD: 1.0}
    while layer:
        following: dict[str, float] = {}
        for board, chance in layer.items():
            if is_over(board):
                mark = winner(board)
                totals[0.0 if not mark else 1.0 if mark == "XO"[seat] else -1.0] += chance
                continue
            mover = policy if (9 - board.count(".")) % 2 == seat else opponent
            for cell, share in mover(board).items():
                following[after(board, cell)] = following.get(after(board, cell), 0.0) + chance * share
        layer = following
    return totals


def best_reply(policy: Chances, seat: int) -> float:
    """Return the mean result of the best opponent of a policy that has a seat: 0 if the policy is perfect.

    >>> round(best_reply(perfect, 0), 9), round(best_reply(evenly, 0), 3)
    (0.0, 0.915)
    """

    @cache
    def value(board: str) -> float:
        if is_over(board):
            mark = winner(board)
            return 0.0 if not mark else -1.0 if mark == "XO"[seat] else 1.0
        if (9 - board.count(".")) % 2 == seat:
            return sum(chance * value(after(board, cell)) for cell, chance in policy(board).items())
        return max(value(after(board, cell)) for cell in free_cells(board))

    return value(EMPTY_BOARD)
