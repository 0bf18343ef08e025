"""The rules of Minesweeper and the deductions that solve it, on whole numbers used as sets of cells.

Bit ``c`` of a set is cell ``c``. The cells of a row are followed by one place that is no cell, so that a shift by one
never leaves a row, and a rule is applied to the whole board by a few shifts. An open cell shows how many of its up to
eight neighbours hold a mine; opening a cell that shows 0 opens its neighbours too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

Planes: TypeAlias = tuple[int, int, int, int]
"""A number from 0 to 9 for each cell: the sets of the cells whose number has bit 0, 1, 2 and 3."""

_MOST_STEPS = 5000


def cells_of(bits: int) -> Iterator[int]:
    """Yield the cells of a set, lowest first.

    >>> list(cells_of(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


@dataclass(frozen=True)
class Grid:
    """The shape of a board.

    Args:
        rows: Number of rows.
        columns: Number of columns.

    >>> Grid(2, 2).cells
    (0, 1, 3, 4)
    """

    rows: int
    columns: int

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """The cells, row by row."""
        return tuple(row * self._stride + column for row in range(self.rows) for column in range(self.columns))

    @cached_property
    def _stride(self) -> int:
        return self.columns + 1

    @cached_property
    def board(self) -> int:
        """The set of all cells."""
        return sum(1 << cell for cell in self.cells)

    @cached_property
    def near(self) -> tuple[int, ...]:
        """The set of neighbours of each cell, empty for the places between the rows."""
        every = range(self.rows * self._stride)
        return tuple(self.box(1 << cell) & ~(1 << cell) if self.board >> cell & 1 else 0 for cell in every)

    def box(self, cells: int) -> int:
        """Return the cells and all their neighbours."""
        wide = cells | cells << 1 | cells >> 1
        return (wide | wide << self._stride | wide >> self._stride) & self.board

    def counts(self, cells: int) -> Planes:
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
    """Return the cells that opening one without a mine opens anew, with the numbers that they show."""
    near = grid.near
    cells = fresh = 1 << cell
    while fresh:
        empty = 0
        for place in cells_of(fresh):
            if not near[place] & mines:
                empty |= 1 << place
        fresh = grid.box(empty) & ~(cells | is_open) if empty else 0
        cells |= fresh
    return {place: (near[place] & mines).bit_count() for place in cells_of(cells)}


def _apply_single_numbers(grid: Grid, numbers: Planes, is_open: int, mines: int, safe: int) -> tuple[int, int]:
    """Return the cells that are mines, and those that are safe, by the numbers of single open cells.

    A number whose mines are all known makes its other neighbours safe. One that needs all its unknown neighbours
    makes them mines.
    """
    one, two, four, eight = numbers
    while True:
        a, b, c, d = grid.counts(mines)
        done = is_open & ~(one ^ a | two ^ b | four ^ c | eight ^ d)
        safe |= grid.box(done) & ~(is_open | mines)
        a, b, c, d = grid.counts(grid.board & ~(is_open | safe))
        full = is_open & ~(one ^ a | two ^ b | four ^ c | eight ^ d)
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
    for cells, wanted in known:
        if not wanted:
            safe |= cells
        elif wanted == cells.bit_count():
            mines |= cells
        for others, other_wanted in known:
            if wanted >= other_wanted and cells & others:
                own = cells & ~others
                if wanted - other_wanted == own.bit_count():
                    mines |= own
                    safe |= others & ~cells
    return mines, safe


class Knowledge:
    """What follows from the numbers of the open cells.

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
        near, is_open = grid.near, _set_of(numbers)
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
    """Return whether deduction alone opens every safe cell, from the first one on."""
    numbers = grid.counts(mines)
    zeros = grid.board & ~(numbers[0] | numbers[1] | numbers[2] | numbers[3])
    near, target = grid.near, grid.board & ~mines
    is_open, known, fresh = 0, 0, 1 << start
    while True:
        while fresh:
            is_open |= fresh
            fresh &= zeros
            fresh = grid.box(fresh) & ~is_open
        if is_open == target:
            return True
        known, fresh = _apply_single_numbers(grid, numbers, is_open, known, 0)
        if not fresh:
            unknown = grid.board & ~(is_open | known)
            sets = {near[cell] & unknown for cell in cells_of(is_open & grid.box(unknown))} | {unknown}
            found, fresh = _apply_pairs([(cells, (cells & mines).bit_count()) for cells in sets])
            if not found and not fresh:
                return False
            known |= found


def _set_of(cells: Mapping[int, int]) -> int:
    bits = 0
    for cell in cells:
        bits |= 1 << cell
    return bits


def other_mines(generator: np.random.Generator, grid: Grid, numbers: Mapping[int, int], num_mines: int) -> int | None:
    """Return random mines that agree with every number seen, None if none were found in a bounded search.

    Args:
        generator: Source of randomness.
        grid: The board's shape.
        numbers: The numbers of the open cells.
        num_mines: Number of all mines.
    """
    near = grid.near
    closed = grid.board & ~_set_of(numbers)
    wanted = [(near[cell] & closed, number) for cell, number in sorted(numbers.items()) if near[cell] & closed]
    order: list[int] = []
    border = 0
    for index in generator.permutation(len(wanted)).tolist():
        order += cells_of(wanted[index][0] & ~border)  # number by number, so that a wrong start is noticed soon
        border |= wanted[index][0]
    beyond = list(cells_of(closed & ~border))
    coins = generator.integers(2, size=len(order)).tolist()
    for mines in _assignments(wanted, order, coins):
        left = num_mines - mines.bit_count()
        if 0 <= left <= len(beyond):
            for index in generator.permutation(len(beyond))[:left].tolist():
                mines |= 1 << beyond[index]
            return mines
    return None


def _assignments(wanted: list[tuple[int, int]], order: list[int], coins: list[int]) -> Iterator[int]:
    """Yield sets of mines that give every number, by trying both values of one cell after the other.

    Args:
        wanted: Pairs of a set of cells and the number of mines among them.
        order: The cells.
        coins: Which value of each cell is tried first.
    """
    touching = [[pair for pair in wanted if pair[0] >> cell & 1] for cell in order]
    steps = 0
    waiting = [(0, 0, 0)]  # how many cells are decided, which of them, and which are mines
    while waiting and steps < _MOST_STEPS:
        steps += 1
        depth, decided, mines = waiting.pop()
        if depth == len(order):
            yield mines
            continue
        bit = 1 << order[depth]
        for is_mine in (1 - coins[depth], coins[depth]):
            chosen = mines | bit * is_mine
            now = decided | bit
            if all(
                0 <= number - (cells & chosen).bit_count() <= (cells & ~now).bit_count()
                for cells, number in touching[depth]
            ):
                waiting.append((depth + 1, now, chosen))
