"""Tic-Tac-Toe: three in a row on a board of nine cells; the first seat plays X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.types import JSONValue

EMPTY_BOARD = "........."
"""Nine cells, row by row: ``X``, ``O`` or a dot."""
MARKS = "XO"
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_MEANINGS = {
    form: str(cell) for cell in range(9) for form in (f"{cell}", f"cell {cell}", f"i play {cell}", f"play {cell}")
}


def mark_to_move(board: str) -> str:
    """Return whose turn it is.

    >>> mark_to_move("X........")
    'O'
    """
    return MARKS[(9 - board.count(".")) % 2]


def free_cells(board: str) -> tuple[int, ...]:
    """Return the numbers of the empty cells."""
    return tuple([cell for cell in range(9) if board[cell] == "."])


def winner(board: str) -> str:
    """Return the mark that has three in a row, empty if none has.

    >>> winner("XXXOO....")
    'X'
    """
    for a, b, c in _LINES:
        if board[a] != "." and board[a] == board[b] == board[c]:
            return board[a]
    return ""


def is_over(board: str) -> bool:
    """Return whether somebody has won or the board is full."""
    return "." not in board or winner(board) != ""


def after(board: str, cell: int) -> str:
    """Return the board after the next mark was set.

    >>> after("X........", 4)
    'X...O....'
    """
    return board[:cell] + mark_to_move(board) + board[cell + 1 :]


@cache  # at most the 5,478 boards that games can reach
def board_value(board: str) -> int:
    """Return what a board is worth to the seat to move, if both play perfectly.

    0 is a draw; a win is positive, larger the sooner it comes (10 less the moves made by then), a loss its negative.

    >>> board_value(EMPTY_BOARD), board_value("XX.OO....")
    (0, 5)
    """
    moves = 9 - board.count(".")
    if winner(board):
        return moves - 10
    if moves == 9:
        return 0
    return max(-board_value(after(board, cell)) for cell in free_cells(board))


def best_cells(board: str) -> tuple[int, ...]:
    """Return the perfect moves: the quickest wins, else the draws, else the slowest losses."""
    best = board_value(board)
    return tuple([cell for cell in free_cells(board) if -board_value(after(board, cell)) == best])


def drawn(board: str) -> str:
    """Return a board as three lines, with the numbers of its empty cells.

    >>> print(drawn("X...O...."))
    X 1 2
    3 O 5
    6 7 8
    """
    shown = [mark if mark != "." else str(cell) for cell, mark in enumerate(board)]
    return "\n".join([" ".join(shown[row : row + 3]) for row in (0, 3, 6)])


class TicTacToe(TwoSeats):
    """Tic-Tac-Toe: +1 for the winner, -1 for the loser, 0 for a draw.

    The anchor is the board with the seat's mark. Between perfect players every game is a draw. An action is the number
    of a cell; answers may show it alone or in brackets, ``6`` or ``[6]``.

    >>> game = TicTacToe()
    >>> game.begin(np.random.default_rng(0), {"board": "XX.OO...."})
    >>> game.commit({0: game.read(0, "the corner [2]")})
    (1.0, -1.0)
    """

    file_options = worded()

    name = "tic_tac_toe"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "alphabetically last"),
        "cells set in their order soon make a row, which a random opponent seldom blocks: opponents=attentive does.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "minimax": "turngym.envs.tablegames.tic_tac_toe:PerfectPlayer",
        "attentive": "turngym.envs.tablegames.tic_tac_toe:AttentivePlayer",
    }

    def setup(self) -> None:
        """Prepare an empty board."""
        self.board = EMPTY_BOARD

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        return (
            f"Tic-Tac-Toe on nine cells with the numbers 0 to 8, row by row. {self.seats[0]} sets X and begins, "
            f"{self.seats[1]} sets O. Three of your marks in a row, column or diagonal win; a full board is a draw.\n"
            "Answer with the number of an empty cell in brackets: [N]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Clear the board; ``{"board": "X...O...."}`` sets it instead, nine cells row by row."""
        self._restart(options, ("board",))
        self.board = str(options.get("board", EMPTY_BOARD))
        marks = self.board.count("X") - self.board.count("O")
        if len(self.board) != 9 or set(self.board) - set("XO.") or marks not in (0, 1) or is_over(self.board):
            raise ConfigError(
                f"board must be nine of X, O and dots, of a game that goes on, with as many X as O or one more, "
                f"got {self.board!r}."
            )

    def asked(self) -> tuple[int, ...]:
        """Return the seat whose mark is next."""
        return () if self._is_over else (MARKS.index(mark_to_move(self.board)),)

    def prompt(self, seat: int) -> str:
        """Return the board."""
        return f"{drawn(self.board)}\nYou are {MARKS[seat]}. Which cell?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the numbers of the empty cells."""
        return tuple([str(cell) for cell in free_cells(self.board)])

    def read(self, seat: int, text: str) -> str:
        """Return the cell that an answer names."""
        cell = read_choice(text, _MEANINGS)
        if self.board[int(cell)] != ".":
            raise InvalidAction(f"Cell {cell} is taken: choose one of {', '.join(self.legal_actions(seat))}.")
        return cell

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Set a mark."""
        ((seat, cell),) = actions.items()
        self.board = after(self.board, int(cell))
        self.tell(self.everyone, f"{self.seats[seat]} sets {MARKS[seat]} on {cell}.")
        if not is_over(self.board):
            return 0.0, 0.0
        self._is_over = True
        has_won = bool(winner(self.board))
        self.tell(self.everyone, f"{drawn(self.board)}\n{self.seats[seat] + ' wins' if has_won else 'A draw'}.")
        if has_won:
            self._earn((1.0, -1.0) if seat == 0 else (-1.0, 1.0))
        return tuple(self._earned)

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return 1.0 if is_winner else -1.0

    def anchor(self, seat: int) -> str:
        """Return the board and the seat's mark."""
        rows = "/".join([self.board[row : row + 3] for row in (0, 3, 6)])
        return f"{rows}; you are {MARKS[seat]}"

    def progress(self, seat: int) -> float:
        """Return the share of the cells that are set, 1 at the end."""
        return 1.0 if self._is_over else 1 - self.board.count(".") / 9

    def score(self, seat: int) -> float:
        """Return 1 for a win, half for a draw, 0 for a loss and before the end."""
        return (1 + self._earned[seat]) / 2 if self._is_over else 0.0

    def metrics(self) -> dict[str, float]:
        """Return the number of marks, and whether the game is drawn."""
        return {"marks": 9.0 - self.board.count("."), "drawn": float(self._is_over and not winner(self.board))}

    def state(self) -> JSONValue:
        """Return the board."""
        return {"board": self.board, "earned": list(self._earned), "is_over": self._is_over}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        self.board, self._is_over = state["board"], state["is_over"]
        self._load_earned(state["earned"])


class PerfectPlayer(Player):
    """Never loses, and wins as soon as it can; picks randomly among equally good moves."""

    name = "minimax"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a perfect move."""
        best = best_cells(view.anchor.partition(";")[0].replace("/", ""))
        return str(best[int(self._random() * len(best))])


class AttentivePlayer(Player):
    """Completes a row, else blocks one, else sets any cell: unlike random play, it cannot be beaten without a plan."""

    name = "attentive"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a cell."""
        board = view.anchor.partition(";")[0].replace("/", "")
        free = free_cells(board)
        own = mark_to_move(board)
        rows = [
            [cell for cell in free if winner(board[:cell] + mark + board[cell + 1 :]) == mark]
            for mark in (own, MARKS.replace(own, ""))
        ]
        best = rows[0] or rows[1] or free
        return str(best[int(self._random() * len(best))])
