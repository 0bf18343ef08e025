"""The rules of 2048, as pure functions on tuples.

A board is a tuple of size * size exponents, row by row: 0 is empty, ``e`` the tile of value 2 ** e. A move pushes all
tiles to one side; two equal tiles that meet become one of twice the value, and a tile made by a move merges no further
in it. After a move that changed the board a new tile appears on an empty cell: a 2 nine times in ten, else a 4.

The new tiles follow from a key and their number in the episode alone, by the generator SplitMix64 (Steele, Lea and
Flood 2014), so that an episode is fixed by its key and its moves.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from turngym.arithmetic import float_sum

MOVES = ("up", "down", "left", "right")
Board = tuple[int, ...]
Line = tuple[int, ...]

_MASK = (1 << 64) - 1
_FOUR = (1 << 32) // 10
_MOST_LINES = 100_000
_LOST = -1e6
_CROWDED = 3


class Pushed(NamedTuple):
    """Result of pushing a line to its start or its end.

    Args:
        lines: The line after each of the two pushes.
        gains: The values of the tiles made by each.
        changes: 1 if the push to the start changes the line, plus 2 if the push to the end does.
    """

    lines: tuple[Line, Line]
    gains: tuple[int, int]
    changes: int


def merged(line: Line) -> tuple[Line, int]:
    """Return a line pushed to its start, and the values of the tiles made.

    >>> merged((1, 0, 1, 2)), merged((1, 1, 1, 1))
    (((2, 2, 0, 0), 4), ((2, 2, 0, 0), 8))
    """
    tiles: list[int] = []
    gain, may_merge = 0, False
    for tile in line:
        if not tile:
            continue
        if may_merge and tiles[-1] == tile:
            tiles[-1] += 1
            gain += 2 << tile
            may_merge = False
        else:
            tiles.append(tile)
            may_merge = True
    return (*tiles, *[0] * (len(line) - len(tiles))), gain


class _Lines(dict[Line, Pushed]):
    """Cached results of pushes; cleared when too many."""

    def __missing__(self, line: Line) -> Pushed:
        if len(self) >= _MOST_LINES:
            self.clear()
        start, start_gain = merged(line)
        mirrored, end_gain = merged(line[::-1])
        end = mirrored[::-1]
        found = Pushed((start, end), (start_gain, end_gain), (start != line) + 2 * (end != line))
        self[line] = found
        return found


_LINES = _Lines()
_LEGAL = tuple(tuple(move for bit, move in enumerate(MOVES) if bits >> bit & 1) for bits in range(16))


class Survey(NamedTuple):
    """The lines of a board and what becomes of them.

    Args:
        rows: The rows, from the top.
        columns: The columns, from the left.
        legal: The moves that change the board, in the order of ``MOVES``.
    """

    rows: list[Pushed]
    columns: list[Pushed]
    legal: tuple[str, ...]


def survey(board: Board, size: int) -> Survey:
    """Return the lines of a board and what becomes of them.

    >>> survey((1, 2, 0, 0), 2).legal
    ('down',)
    """
    known = _LINES
    rows = [known[board[first : first + size]] for first in range(0, size * size, size)]
    columns = [known[board[column::size]] for column in range(size)]
    changes = 0
    for column in columns:
        changes |= column[2]
    for row in rows:
        changes |= row[2] << 2
    return Survey(rows, columns, _LEGAL[changes])


def push(seen: Survey, move: str) -> tuple[Board, int]:
    """Return the board after a move, without the new tile, and the values of the tiles made.

    >>> push(survey((1, 1, 0, 2), 2), "left")
    ((2, 0, 2, 0), 4)
    """
    end = move in ("down", "right")
    if move in ("left", "right"):
        rows = seen.rows
        return tuple([tile for row in rows for tile in row[0][end]]), sum([row[1][end] for row in rows])
    columns = seen.columns
    across = zip(*[column[0][end] for column in columns], strict=True)
    return tuple([tile for row in across for tile in row]), sum([column[1][end] for column in columns])


def random_bits(key: int, index: int) -> int:
    """Return the 64 random bits that stand at a place of the stream named by ``key``.

    >>> hex(random_bits(0, 0))
    '0xe220a8397b1dcdaf'
    """
    bits = (key + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
    return bits ^ bits >> 31


def with_new_tile(board: Board, bits: int) -> Board:
    """Return the board with the new tile that 64 random bits pick: the cell from the upper half, 2 or 4 from the lower.

    Raises:
        ZeroDivisionError: No cell is empty.
    """
    empty = [cell for cell, tile in enumerate(board) if not tile]
    cell = empty[(bits >> 32) % len(empty)]
    return (*board[:cell], 2 if bits & 0xFFFFFFFF < _FOUR else 1, *board[cell + 1 :])


@lru_cache(maxsize=_MOST_LINES)
def line_text(line: Line, width: int) -> str:
    """Return the values of a line, right-aligned, ``.`` for an empty cell.

    >>> line_text((0, 1, 4), 3)
    '  .   2  16'
    """
    return " ".join([f"{1 << tile if tile else '.':>{width}}" for tile in line])


def board_text(board: Board, size: int, width: int) -> str:
    """Return the board as lines of values."""
    return "\n".join([line_text(board[first : first + size], width) for first in range(0, size * size, size)])


# The reference player.


@lru_cache(maxsize=_MOST_LINES)
def _line_value(line: Line) -> float:
    """Return how good a line is: 10 for an empty cell, 5 for two equal neighbours, and less for disorder.

    A line in order rises or falls all the way. The disorder is the sum of its rises or that of its falls, whichever is
    smaller, between the cubes of the exponents, divided by 10.
    """
    equal = rising = falling = 0
    for one, other in pairwise(line):
        equal += one == other != 0
        if one > other:
            falling += int(one**3 - other**3)
        else:
            rising += int(other**3 - one**3)
    return 10.0 * line.count(0) + 5.0 * equal - 0.1 * min(rising, falling)


def board_value(board: Board, size: int) -> float:
    """Return the sum over all rows and columns of how good they are."""
    total = 0.0
    for line in range(size):
        total += _line_value(board[line * size : (line + 1) * size]) + _line_value(board[line::size])
    return total


def _best(board: Board, size: int, depth: int) -> tuple[str | None, float]:
    """Return the best move and its value; a board without a move is worth a great loss."""
    seen = survey(board, size)
    best, best_value = None, _LOST
    for move in seen.legal:
        after, _ = push(seen, move)
        value = _expected(after, size, depth) if depth else board_value(after, size)
        if best is None or value > best_value:
            best, best_value = move, value
    return best, best_value


def _expected(board: Board, size: int, depth: int) -> float:
    """Return the mean over all places of the new tile, which counts as a 2."""
    empty = [cell for cell, tile in enumerate(board) if not tile]
    values = [_best((*board[:cell], 1, *board[cell + 1 :]), size, depth - 1)[1] for cell in empty]
    return float_sum(values) / len(values)


def best_move(board: Board, size: int) -> str | None:
    """Return the move with the best expected value, None if no move changes the board.

    It looks one new tile and the move after it ahead, and where the board is almost full one tile and move more.
    """
    return _best(board, size, 1 if board.count(0) > _CROWDED else 2)[0]
