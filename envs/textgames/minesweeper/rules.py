"""The rules of Minesweeper and the deductions that solve it, on whole numbers used as sets of cells.

Bit ``c`` of a set is cell ``c``. The cells of a row are followed by one place that is no cell, so that a shift by one
never leaves a row, and a rule is applied to the whole board by a few shifts. An open cell shows how many of its up to
eight neighbours hold a mine; opening a cell that shows 0 opens its neighbours too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import TypeAlias

_Planes: TypeAlias = tuple[int, int, int, int]
"""A number from 0 to 9 for each cell: the sets of the cells whose number has bit 0, 1, 2 and 3."""

_NONE: _Planes = (0, 0, 0, 0)


def cells_of(bits: int) -> Iterator[int]:
    """Yield the cells of a set, lowest first.

    >>> list(cells_of(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class Grid:
    """The shape of a board.

    Args:
        rows: Number of rows.
        columns: Number of columns.

    >>> Grid(2, 2).cells
    (0, 1, 3, 4)
    """

    cells: tuple[int, ...]
    """The cells, row by row."""
    board: int
    """The set of all cells."""
    near: tuple[int, ...]
    """The set of neighbours of each cell, empty for the places between the rows."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns, self._stride = rows, columns, columns + 1
        self.cells = tuple(row * self._stride + column for row in range(rows) for column in range(columns))
        self.board = set_of(self.cells)
        boxes = [self.box(self.board & 1 << cell) for cell in range(rows * self._stride)]
        self.near = tuple(box & ~(1 << cell) for cell, box in enumerate(boxes))

    def box(self, cells: int) -> int:
        """Return the cells and all their neighbours."""
        wide = cells | cells << 1 | cells >> 1
        return (wide | wide << self._stride | wide >> self._stride) & self.board

    def counts(self, cells: int) -> _Planes:
        """Return for each cell how many of itself and its neighbours are in the set.

        Three bits in a row are added to a number of two bits, and three of these in a column to one of four, for all
        cells at once.

        >>> [plane & 1 for plane in Grid(2, 2).counts(0b11010)]
        [1, 1, 0, 0]
        """
        left, right, stride = cells << 1, cells >> 1, self._stride
        one, two = left ^ cells ^ right, left & cells | left & right | cells & right
        above, below = one << stride, one >> stride
        plane0, carry = above ^ one ^ below, above & one | above & below | one & below
        above, below = two << stride, two >> stride
        half, more = above ^ two ^ below, above & two | above & below | two & below
        over = half & carry
        return plane0, half ^ carry, more ^ over, more & over


def opened(grid: Grid, cell: int, mines: int, is_open: int) -> dict[int, int]:
    """Return the cells that opening one without a mine opens again, with the numbers that they show."""
    near, numbers = grid.near, {}
    waiting = 1 << cell
    closed = ~(is_open | waiting)
    while waiting:
        place = waiting.bit_length() - 1
        waiting ^= 1 << place
        numbers[place] = number = (near[place] & mines).bit_count()
        if not number:
            fresh = near[place] & closed
            waiting |= fresh
            closed ^= fresh
    return numbers


def _equal(numbers: _Planes, others: _Planes) -> int:
    """Return the places where two numbers are equal, those that are not cells included."""
    return ~(numbers[0] ^ others[0] | numbers[1] ^ others[1] | numbers[2] ^ others[2] | numbers[3] ^ others[3])


def _apply_single_numbers(grid: Grid, numbers: _Planes, is_open: int, mines: int, safe: int) -> tuple[int, int]:
    """Return the cells that are mines, and those that are safe, by the numbers of single open cells.

    A number whose mines are all known makes its other neighbours safe. One that needs all its unknown neighbours
    makes them mines.
    """
    while True:
        done = is_open & _equal(numbers, grid.counts(mines))
        safe |= grid.box(done) & ~(is_open | mines)
        full = is_open & _equal(numbers, grid.counts(grid.board & ~(is_open | safe)))
        found = grid.box(full) & ~(is_open | safe | mines)
        if not found:
            return mines, safe
        mines |= found


def _apply_pairs(known: list[tuple[int, int]]) -> tuple[int, int]:
    """Return mines and safe cells that follow from two numbers.

    If one wants more mines than the other by as many as it has cells of its own, these are mines and the other's own
    cells are safe. A number that wants none, or all, counts for itself.
    """
    mines = safe = 0
    for index, (cells, wanted) in enumerate(known, 1):
        if not wanted:
            safe |= cells
        elif wanted == cells.bit_count():
            mines |= cells
        for others, other_wanted in known[index:]:
            common = cells & others
            if common:
                own, theirs, more = cells ^ common, others ^ common, wanted - other_wanted
                if more == own.bit_count():
                    mines |= own
                    safe |= theirs
                if more == -theirs.bit_count():
                    mines |= theirs
                    safe |= own
    return mines, safe


class Knowledge:
    """Deductions from the numbers of the open cells.

    Two rules about single numbers and one about pairs of numbers are applied until something is safe or they give
    nothing new; the number of all mines takes part as a number about every unknown cell.

    Args:
        grid: The board's shape.
        num_mines: Number of all mines.
        numbers: The number of each open cell.

    >>> knowledge = Knowledge(Grid(1, 4), 1, {0: 0, 1: 1})
    >>> list(cells_of(knowledge.mines)), list(cells_of(knowledge.safe))
    ([2], [3])
    """

    mines: int
    """Cells that hold a mine."""
    safe: int
    """Cells that are closed and hold none; empty only if the rules find none."""
    constraints: list[tuple[int, int]]
    """Pairs of a set of unknown cells and the number of mines among them; the last is about all unknown cells."""

    def __init__(self, grid: Grid, num_mines: int, numbers: Mapping[int, int]) -> None:
        near, is_open = grid.near, set_of(numbers)
        planes = [0, 0, 0, 0]
        for cell, number in numbers.items():
            for bit in cells_of(number):
                planes[bit] |= 1 << cell
        self.mines = self.safe = 0
        while True:
            one, two, four, eight = planes
            self.mines, self.safe = _apply_single_numbers(grid, (one, two, four, eight), is_open, self.mines, self.safe)
            unknown = grid.board & ~(is_open | self.mines | self.safe)
            border = cells_of(is_open & grid.box(unknown))
            wanted = {near[cell] & unknown: numbers[cell] - (near[cell] & self.mines).bit_count() for cell in border}
            self.constraints = [*wanted.items(), (unknown, num_mines - self.mines.bit_count())]
            if self.safe:
                return
            mines, self.safe = _apply_pairs(self.constraints)
            if not mines:
                return
            self.mines |= mines

    def best_guess(self) -> int:
        """Return the unknown cell whose worst number gives the least share of mines; for want of a safe cell.

        Raises:
            ValueError: No cell is unknown.
        """
        *local, (unknown, wanted) = self.constraints
        if not unknown:
            raise ValueError("every cell is open or decided")
        overall = wanted / unknown.bit_count()
        risks: dict[int, float] = {}
        for cells, count in local:
            for cell in cells_of(cells):
                risks[cell] = max(risks.get(cell, 0.0), count / cells.bit_count())
        return min(cells_of(unknown), key=lambda cell: risks.get(cell, overall))


def solvable(grid: Grid, mines: int, start: int) -> bool:
    """Return whether deduction alone opens every safe cell, from the first one on.

    It deduces what :class:`Knowledge` does, in another order: what a rule gives stays true when more is known. As the
    mines are given here, rules are about sets: a number whose mines are all known has none among its unknown cells. Of
    two numbers, one wants more mines by as many as it has cells of its own if these all hold mines and the other's own
    cells hold none. With its mines left out and those of all others put in, the one's set is then part of the other's.
    """
    box, near = grid.box, grid.near
    is_open, hidden = 1 << start, mines
    safe = grid.board & ~(mines | is_open)
    finished = ~box(hidden)
    while safe:
        fresh = safe & box(is_open & finished)
        if not fresh:
            found = hidden & box(is_open & ~box(safe))
            if not found:
                unknown = safe | hidden
                swapped = {near[cell] & unknown ^ hidden for cell in cells_of(is_open & box(unknown))} | {safe, hidden}
                decided = 0
                for part, whole in combinations(sorted(swapped), 2):  # a part is never the larger number
                    if part & whole == part:
                        decided |= part ^ whole
                if not decided:
                    return False
                found, fresh = decided & hidden, decided & safe
            hidden ^= found
            finished = ~box(hidden)
        is_open |= fresh
        safe ^= fresh
    return True


def set_of(cells: Iterable[int]) -> int:
    """Return cells as a set.

    >>> set_of([1, 3]) == 0b1010
    True
    """
    bits = 0
    for cell in cells:
        bits |= 1 << cell
    return bits
