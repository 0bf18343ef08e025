"""Connect Four on bitboards: stones of any number of columns and rows as the bits of two whole numbers.

Every column takes ``rows + 1`` bits, the lowest cell first; the bit above its top cell is always 0, so that lines do
not run from one column into the next (Tromp's layout).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

WIN = 1000
"""A win is worth this less the stones on the board by then, so that the quickest one is worth most."""


_KEPT = 150_000
"""Values that each of the two tables of a search holds; one that is full is emptied."""

_DEEP = 9
"""Values of positions with at least so many moves to search have their own table.

They are few and costly, and the many cheap ones would push them out again and again.
"""


class Grid(NamedTuple):
    """The size of a board.

    Args:
        rows: Height, at least 1.
        columns: Width, at least 1.
        connect: Stones in a row that win.
    """

    rows: int = 6
    columns: int = 7
    connect: int = 4

    @property
    def cells(self) -> int:
        """Number of stones that fill the board."""
        return self.rows * self.columns

    def floor(self, column: int) -> int:
        """Return the bit of the lowest cell of a column."""
        return 1 << column * (self.rows + 1)

    def strip(self, column: int) -> int:
        """Return the bits of all cells of a column."""
        return ((1 << self.rows) - 1) << column * (self.rows + 1)


class Position(NamedTuple):
    """A board as the seat to move sees it.

    Args:
        own: Bits of its stones.
        both: Bits of all stones.
    """

    own: int = 0
    both: int = 0


def open_columns(grid: Grid, position: Position) -> tuple[int, ...]:
    """Return the columns that have room."""
    return tuple([column for column in range(grid.columns) if grid.strip(column) & ~position.both])


def dropped(grid: Grid, position: Position, column: int) -> Position:
    """Return the position after a stone was dropped into a column that has room, as the other seat sees it."""
    stone = (position.both + grid.floor(column)) & grid.strip(column)
    return Position(position.both ^ position.own, position.both | stone)


@lru_cache(maxsize=8)
def _line_finder(rows: int, connect: int) -> Callable[[int], bool]:
    """Return what tells whether some stones hold enough in a row, column or diagonal of one board size."""
    height, more = rows + 1, range(connect - 1)
    shifts = (1, height, height - 1, height + 1)

    def has(stones: int) -> bool:
        for shift in shifts:
            line = stones
            for _ in more:
                line &= line >> shift
            if line:
                return True
        return False

    return has


def has_line(grid: Grid, stones: int) -> bool:
    """Return whether some stones hold enough in a row, column or diagonal.

    >>> has_line(Grid(), 0b1111), has_line(Grid(), 0b0111)
    (True, False)
    """
    return _line_finder(grid.rows, grid.connect)(stones)


def just_won(grid: Grid, position: Position) -> bool:
    """Return whether the seat that moved last has won."""
    return has_line(grid, position.both ^ position.own)


def from_columns(columns: tuple[str, ...], grid: Grid) -> Position:
    """Return the position of columns of ``X`` and ``O``, the lowest stone first; X started.

    >>> from_columns(("XO", "", "X"), Grid(2, 3, 2)) == Position(own=0b10, both=0b1000011)
    True
    """
    bits = {"X": 0, "O": 0}
    for column, stones in enumerate(columns):
        for row, mark in enumerate(stones):
            bits[mark] |= grid.floor(column) << row
    both = bits["X"] | bits["O"]
    return Position(bits["XO"[both.bit_count() % 2]], both)


def columns_of(rows: str) -> tuple[str, ...]:
    """Return the columns of a board that is written row by row from the top.

    >>> columns_of("../O./XX")
    ('XO', 'X')
    """
    return tuple(["".join(column).replace(".", "")[::-1] for column in zip(*rows.split("/"), strict=True)])


def move_values(grid: Grid, position: Position, depth: int) -> dict[int, int]:
    """Return the best columns with their common value, by alpha-beta search.

    Args:
        grid: Size of the board.
        position: A position in which the game continues.
        depth: Moves to look ahead, at least 1. If all empty cells are within, the values are exact: positive for a
            win, 0 for a draw, negative for a loss. Else the value of the last position looked at is how much more of
            the middle columns the seat holds.

    Returns:
        Column -> value, for the columns whose value is the largest.
    """
    search = searcher(grid)
    best: dict[int, int] = {}
    value = -WIN
    for column in _middle_first(grid):
        if not grid.strip(column) & ~position.both:
            continue
        # A window one below the best so far tells an equal move from a worse one.
        found = -search(*dropped(grid, position, column), depth - 1, -WIN, 1 - value)
        if found > value:
            best = {}
            value = found
        if found == value:
            best[column] = found
    return best


def position_value(grid: Grid, position: Position) -> int:
    """Return the exact value of a position to the seat to move: its sign is the result of perfect play."""
    return searcher(grid)(*position, grid.cells, -WIN, WIN)


def _middle_first(grid: Grid) -> list[int]:
    return sorted(range(grid.columns), key=lambda column: (abs(2 * column - grid.columns + 1), column))


Search = Callable[[int, int, int, int, int], int]


@lru_cache(maxsize=4)
def searcher(grid: Grid) -> Search:
    """Return the search of one board size: from own bits, all bits, depth, alpha and beta to a value.

    Values found with the whole of a line are kept from call to call, up to 300,000; so a call's result never
    depends on those before it, only its time.
    """
    wins, search = _line_finder(grid.rows, grid.connect), _alpha_beta(grid)

    def checked(own: int, both: int, depth: int, alpha: int, beta: int) -> int:
        return both.bit_count() - WIN if wins(both ^ own) else search(own, both, depth, alpha, beta)

    return checked


def _alpha_beta(grid: Grid) -> Search:
    """Return the search for positions in which the seat that moved last has no line."""
    strips = [grid.strip(column) for column in _middle_first(grid)]
    full, middle, looked = sum(strips), sum(strips[: 2 - grid.columns % 2]), _looker(grid)
    shallow: dict[tuple[int, int, int], tuple[int, int]] = {}
    deep: dict[tuple[int, int, int], tuple[int, int]] = {}

    def search(own: int, both: int, depth: int, alpha: int, beta: int) -> int:
        """Return the value, or a bound of it outside of the window."""
        if both == full:
            return 0
        other, count = both ^ own, both.bit_count()
        if depth == 0:
            return (own & middle).bit_count() - (other & middle).bit_count()
        depth = min(depth, grid.cells - count)
        known = deep if depth >= _DEEP else shallow
        low, high = known.get((own, both, depth), (-WIN, WIN))
        if low >= beta or low == high:
            return low
        if high <= alpha:
            return high
        value, moves = looked(own, other, both, depth > 1)
        if not moves:
            return value
        floor, beta = max(alpha, low), min(beta, high)
        for stone in moves:
            found = -search(other, both | stone, depth - 1, -beta, -max(floor, value))
            if found > value:
                value = found
                if value >= beta:
                    break
        if len(known) >= _KEPT:
            known.clear()
        known[own, both, depth] = low if value <= floor else max(low, value), high if value >= beta else value
        return value

    return search


def _looker(grid: Grid) -> Callable[[int, int, int, bool], tuple[int, list[int]]]:
    """Return what looks a move ahead: the moves to search, or none and the value where the game is decided."""
    wins = _line_finder(grid.rows, grid.connect)
    order = [(grid.floor(column), grid.strip(column)) for column in _middle_first(grid)]

    def looked(own: int, other: int, both: int, is_deep: bool) -> tuple[int, list[int]]:
        moves = [stone for bottom, strip in order if (stone := (both + bottom) & strip)]
        for stone in moves:
            if wins(own | stone):
                return WIN - both.bit_count() - 1, []
        if is_deep:  # the other seat's next move is looked at too: stop its win, if there is but one
            threats = [stone for stone in moves if wins(other | stone)]
            if len(threats) > 1:
                return both.bit_count() + 2 - WIN, []
            moves = threats or moves
        return -WIN, moves

    return looked
