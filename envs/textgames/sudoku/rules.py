"""The rules of Sudoku as pure functions on grids of any box size: random grids, puzzles, the next logical cell.

A grid is a list with one number per cell, row by row; 0 is empty. The value ``v`` stands as the bit ``1 << (v - 1)``
wherever sets of values are needed. Every puzzle made here can be solved without guessing, by two rules alone:

- naked single: a cell whose row, column and box hold every other value;
- hidden single: a value that fits into only one cell of a row, a column or a box.

So its solution is unique. A clue is taken out only where one of the rules puts it back from the clues that are left;
that also shows, read backwards, that the rules never get stuck on the way to the solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Grid: TypeAlias = Sequence[int]
"""Values of the cells, row by row; 0 is empty."""

BOXES = {4: (2, 2), 6: (2, 3), 9: (3, 3)}
"""Size of the grid -> rows and columns of a box."""
_MOST_NODES = 5000
_MEMBERS = tuple([tuple([value for value in range(1, 10) if held >> value - 1 & 1]) for held in range(512)])


class Layout(NamedTuple):
    """Which cells belong together.

    Args:
        size: Cells along one side, and how many values there are.
        row: Row of each cell.
        column: Column of each cell.
        box: Box of each cell.
        peers: For each cell all others of its row, column and box.
        units: For each cell the other cells of its row, of its column and of its box.
    """

    size: int
    row: tuple[int, ...]
    column: tuple[int, ...]
    box: tuple[int, ...]
    peers: tuple[tuple[int, ...], ...]
    units: tuple[tuple[tuple[int, ...], ...], ...]


@cache
def layout(size: int) -> Layout:
    """Return the layout of a grid of 4, 6 or 9 cells a side.

    >>> layout(4).peers[0]
    (1, 2, 3, 4, 5, 8, 12)
    """
    height, width = BOXES[size]
    cells = range(size * size)
    row = tuple([cell // size for cell in cells])
    column = tuple([cell % size for cell in cells])
    box = tuple([row[cell] // height * height + column[cell] // width for cell in cells])
    units = tuple(
        [
            tuple(
                [
                    tuple([other for other in cells if other != cell and kind[other] == kind[cell]])
                    for kind in (row, column, box)
                ]
            )
            for cell in cells
        ]
    )
    peers = tuple([tuple(sorted(set().union(*units[cell]))) for cell in cells])
    return Layout(size, row, column, box, peers, units)


def taken(grid: Grid, size: int) -> list[int]:
    """Return for each cell, filled or not, the set of the values that its peers hold.

    >>> bin(taken([1, 2, 3, 0] + [0] * 12, 4)[3])
    '0b111'
    """
    bits = [1 << value >> 1 for value in grid]
    found = []
    for others in layout(size).peers:
        held = 0
        for other in others:
            held |= bits[other]
        found.append(held)
    return found


def free_values(grid: Grid, size: int) -> list[tuple[int, ...]]:
    """Return for each cell, filled or not, the values that none of its peers holds.

    >>> free_values([1, 2, 0, 0] + [0] * 12, 4)[2:4]
    [(3, 4), (3, 4)]
    """
    shape, full = layout(size), (1 << size) - 1
    rows, columns, boxes = ([full] * size for _ in range(3))
    for row, column, box, value in zip(shape.row, shape.column, shape.box, grid, strict=True):
        bit = ~(1 << value >> 1)
        rows[row] &= bit
        columns[column] &= bit
        boxes[box] &= bit
    held = zip(shape.row, shape.column, shape.box, strict=True)
    return [_MEMBERS[rows[row] & columns[column] & boxes[box]] for row, column, box in held]


def random_grid(generator: np.random.Generator, size: int) -> list[int]:
    """Return a full grid that keeps the rules, found cell by cell, in random order of values, by backtracking."""
    shape = layout(size)
    rows, columns, boxes = ([0] * size for _ in range(3))
    cells = size * size
    grid = [0] * cells
    nodes = 0

    def fill(cell: int) -> bool:
        nonlocal nodes
        if cell == cells:
            return True
        nodes += 1
        row, column, box = shape.row[cell], shape.column[cell], shape.box[cell]
        held = rows[row] | columns[column] | boxes[box]
        for value in order[cell]:
            bit = 1 << value
            if not held & bit:
                rows[row] |= bit
                columns[column] |= bit
                boxes[box] |= bit
                if nodes < _MOST_NODES and fill(cell + 1):
                    grid[cell] = value + 1
                    return True
                rows[row] ^= bit
                columns[column] ^= bit
                boxes[box] ^= bit
        return False

    while True:  # few tries meet a bad beginning; another order is cheaper than to search on
        order = generator.permuted(_ordered(size), axis=1).tolist()
        nodes = 0
        if fill(0):
            return grid


@cache
def _ordered(size: int) -> NDArray[np.int64]:
    """Return the values less one, once for each cell."""
    return np.tile(np.arange(size), (size * size, 1))


def dig(solution: Grid, order: Sequence[int], clues: int, size: int) -> list[int]:
    """Return a puzzle: the solution without the cells that the rules can put back.

    Args:
        solution: A full grid.
        order: The cells, in the order in which to try to take them out.
        clues: Stop when so many clues are left.
        size: Cells along one side.

    Returns:
        The puzzle; it has more clues than asked for where no further clue can be taken out.
    """
    shape, grid = layout(size), list(solution)
    rows, columns, boxes = ([(1 << size) - 1] * size for _ in range(3))
    left = size * size
    for cell in order:
        if left == clues:
            break
        bit = 1 << solution[cell] - 1
        row, column, box = shape.row[cell], shape.column[cell], shape.box[cell]
        rows[row] ^= bit
        columns[column] ^= bit
        boxes[box] ^= bit
        grid[cell] = 0
        held = rows[row] | columns[column] | boxes[box]
        if held.bit_count() == size - 1 or _is_hidden_single(shape, grid, cell, bit, rows, columns, boxes):
            left -= 1
            continue
        grid[cell] = solution[cell]
        rows[row] ^= bit
        columns[column] ^= bit
        boxes[box] ^= bit
    return grid


def _is_hidden_single(
    shape: Layout, grid: Grid, cell: int, bit: int, rows: Sequence[int], columns: Sequence[int], boxes: Sequence[int]
) -> bool:
    """Return whether a value that fits a cell fits no other empty cell of its row, its column or its box."""
    row, column, box = shape.row, shape.column, shape.box
    for unit in shape.units[cell]:
        for other in unit:
            if not grid[other] and not (rows[row[other]] | columns[column[other]] | boxes[box[other]]) & bit:
                break
        else:
            return True
    return False


def next_logical(grid: Grid, size: int) -> tuple[int, int] | None:
    """Return a cell and its value that one of the two rules gives, naked singles first; None if there is none.

    >>> next_logical([1, 2, 3, 0] + [0] * 12, 4)
    (3, 4)
    """
    shape, held = layout(size), taken(grid, size)
    full = (1 << size) - 1
    empty = [cell for cell in range(size * size) if not grid[cell]]
    for cell in empty:
        if held[cell].bit_count() == size - 1:
            return cell, (full ^ held[cell]).bit_length()
    for cell in empty:
        for unit in shape.units[cell]:
            elsewhere = 0
            for other in unit:
                elsewhere |= 0 if grid[other] else full & ~held[other]
            alone = full & ~held[cell] & ~elsewhere
            if alone:
                return cell, alone.bit_length()
    return None


def solutions(grid: Grid, size: int, most: int = 2) -> list[list[int]]:
    """Return up to ``most`` full grids that hold the puzzle, by search; the cell with the fewest values comes first."""
    held = taken(grid, size)
    best, fewest = -1, size + 1
    for cell, value in enumerate(grid):
        left = size - held[cell].bit_count()
        if not value and left < fewest:
            best, fewest = cell, left
    if best < 0:
        return [list(grid)]
    found: list[list[int]] = []
    for value in range(1, size + 1):
        if not held[best] >> (value - 1) & 1 and len(found) < most:
            found += solutions([*grid[:best], value, *grid[best + 1 :]], size, most - len(found))
    return found


def grid_text(grid: Grid, size: int) -> str:
    """Return one line a row, values and dots with spaces between them.

    >>> print(grid_text([1, 2, 3, 0] * 4, 4).splitlines()[0])
    1 2 3 .
    """
    symbols = [str(value) if value else "." for value in grid]
    return "\n".join([" ".join(symbols[start : start + size]) for start in range(0, size * size, size)])


def parse_grid(text: str) -> list[int]:
    """Return the grid of a text that ``grid_text`` made."""
    return [0 if symbol == "." else int(symbol) for symbol in text.split()]
