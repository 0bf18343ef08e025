"""Random mines: anywhere but near a first cell, or wherever the numbers that are seen allow them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from turngym.envs.textgames.minesweeper.rules import Grid, cells_of, set_of

_MOST_STEPS = 5000


def draw_mines(generator: np.random.Generator, grid: Grid, num_mines: int) -> tuple[int, int]:
    """Return a first cell and mines neither there nor near it, all equally likely.

    >>> start, mines = draw_mines(np.random.default_rng(0), Grid(5, 5), 3)
    >>> mines.bit_count(), mines & Grid(5, 5).box(1 << start)
    (3, 0)
    """
    order = list(grid.cells)
    generator.shuffle(order)  # as generator.permutation does, in half the time
    start, mines = order[0], 0
    free = grid.board & ~grid.box(1 << start)
    for cell in order:
        mines |= free & 1 << cell
        if mines.bit_count() == num_mines:
            break
    return start, mines


def other_mines(generator: np.random.Generator, grid: Grid, numbers: Mapping[int, int], num_mines: int) -> int | None:
    """Return random mines that agree with every number seen, None if none were found in a bounded search.

    Args:
        generator: Source of randomness.
        grid: The board's shape.
        numbers: The numbers of the open cells.
        num_mines: Number of all mines.
    """
    near = grid.near
    closed = grid.board & ~set_of(numbers)
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
        coins: Order in which values of a cell are tested.
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
