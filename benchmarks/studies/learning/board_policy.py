"""What a small policy knows of Tic-Tac-Toe and Connect Four: the lines through the cell that a move fills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from facts_policy import FactsGame

Cell = tuple[int, int]
Line = tuple[Cell, ...]


@cache
def lines_through(rows: int, columns: int, length: int, cell: Cell) -> tuple[Line, ...]:
    """Return all straight lines of a length that a cell belongs to.

    >>> len(lines_through(3, 3, 3, (1, 1))), len(lines_through(4, 5, 4, (0, 0)))
    (4, 3)
    """
    found = []
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                line = tuple((row + down * k, column + right * k) for k in range(length))
                if cell in line and all(0 <= r < rows and 0 <= c < columns for r, c in line):
                    found.append(line)
    return tuple(found)


def facts(board: Sequence[str], me: str, cell: Cell, length: int, falls: bool) -> list[str]:
    """Return what holds of filling a cell.

    Args:
        board: Rows from the top, of ``X``, ``O`` and dots.
        me: The mark of the mover.
        cell: Row and column.
        length: How many in a row win.
        falls: Whether stones fall: then the cell above is the opponent's to fill next.
    """
    shape = len(board), len(board[0]), length
    found = [f"{me} fills {cell}"]
    for line in lines_through(*shape, cell):
        held = _held(board, me, line)
        found += [f"{me} {cell} {line[0]} {line[-1]} {held}", f"{held.count('m')} mine, {held.count('t')} theirs"]
    if falls and cell[0]:
        above = cell[0] - 1, cell[1]
        for line in lines_through(*shape, above):
            held = "".join(
                "m" if each == cell else mark for each, mark in zip(line, _held(board, me, line), strict=True)
            )
            found += [
                f"above: {held.count('m')} mine, {held.count('t')} theirs",
                f"above {me} {line[0]} {line[-1]} {held}",
            ]
    return found


def _held(board: Sequence[str], me: str, line: Line) -> str:
    """Return what a line holds: m for the mover's marks, t for the other's."""
    return "".join("." if board[r][c] == "." else "m" if board[r][c] == me else "t" for r, c in line)


def _read(anchor: str) -> tuple[list[str], str]:
    board, *_, you = anchor.split("; ")
    return board.split("/"), you[-1]


def of_tic_tac_toe(anchor: str, legal: Sequence[str]) -> dict[str, list[str]]:
    """Return the facts of each free cell."""
    board, me = _read(anchor)
    return {action: facts(board, me, divmod(int(action), 3), 3, falls=False) for action in legal}


def of_connect_four(anchor: str, legal: Sequence[str]) -> dict[str, list[str]]:
    """Return the facts of each column that is not full."""
    board, me = _read(anchor)
    found = {}
    for action in legal:
        column = int(action)
        row = max(row for row in range(len(board)) if board[row][column] == ".")
        found[action] = facts(board, me, (row, column), 4, falls=True)
    return found


TIC_TAC_TOE = FactsGame("tic-tac-toe", tuple(map(str, range(9))), 16_384, of_tic_tac_toe)
CONNECT_FOUR = FactsGame("connect-four", tuple(map(str, range(5))), 65_536, of_connect_four)
