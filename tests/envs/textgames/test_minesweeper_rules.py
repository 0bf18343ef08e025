"""Minesweeper's rules and deductions, against loops over cells and against every layout that fits."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from turngym.envs.textgames.minesweeper.layouts import draw_mines, other_mines
from turngym.envs.textgames.minesweeper.rules import Grid, Knowledge, cells_of, opened, set_of, solvable

SHAPES = [(1, 4), (3, 3), (5, 8), (8, 5), (12, 12)]


def around(grid: Grid, cell: int) -> list[int]:
    """The neighbours of a cell, by coordinates."""
    index = grid.cells.index(cell)
    row, column = divmod(index, grid.columns)
    lines = range(max(0, row - 1), min(grid.rows, row + 2))
    places = range(max(0, column - 1), min(grid.columns, column + 2))
    near = [grid.cells[line * grid.columns + place] for line in lines for place in places]
    return [other for other in near if other != cell]


def boards(count: int, rows: int, columns: int, num_mines: int) -> Iterator[tuple[Grid, int, int]]:
    """Yield shape, mines and a first cell without a mine near it."""
    generator = np.random.default_rng(rows * columns)
    grid = Grid(rows, columns)
    while count:
        start = grid.cells[int(generator.integers(len(grid.cells)))]
        free = [cell for cell in grid.cells if cell != start and cell not in around(grid, start)]
        yield grid, set_of(generator.permutation(free)[:num_mines].tolist()), start
        count -= 1


def layouts(grid: Grid, numbers: dict[int, int], num_mines: int) -> list[int]:
    """Every set of mines that fits the numbers, by trying all."""
    closed = [cell for cell in grid.cells if cell not in numbers]
    found = []
    for chosen in combinations(closed, num_mines):
        mines = set_of(list(chosen))
        if all((grid.near[cell] & mines).bit_count() == number for cell, number in numbers.items()):
            found.append(mines)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_cells_and_neighbours_are_those_of_the_coordinates(shape: tuple[int, int]) -> None:
    grid = Grid(*shape)
    assert len(grid.cells) == shape[0] * shape[1] == grid.board.bit_count()
    for cell in grid.cells:
        assert sorted(cells_of(grid.near[cell])) == sorted(around(grid, cell))


@pytest.mark.parametrize("shape", SHAPES)
def test_counts_and_box_agree_with_a_loop_over_cells(shape: tuple[int, int]) -> None:
    grid, generator = Grid(*shape), np.random.default_rng(0)
    for share in (0.1, 0.5, 1.0):
        chosen = [cell for cell in grid.cells if generator.random() < share]
        planes, box = grid.counts(set_of(chosen)), grid.box(set_of(chosen))
        for cell in grid.cells:
            count = sum(other in chosen for other in [cell, *around(grid, cell)])
            assert sum((plane >> cell & 1) << bit for bit, plane in enumerate(planes)) == count
            assert box >> cell & 1 == (count > 0)
        assert box & ~grid.board == 0


def test_opening_floods_over_zeros_and_stops_at_numbers() -> None:
    for grid, mines, start in boards(50, 8, 8, 10):
        expected, waiting = dict[int, int](), [start]
        while waiting:
            cell = waiting.pop()
            if cell not in expected:
                expected[cell] = sum(mines >> other & 1 for other in around(grid, cell))
                waiting += around(grid, cell) if not expected[cell] else []
        assert opened(grid, start, mines, 0) == expected
        assert len(expected) > 3


def test_cells_that_are_open_already_are_not_opened_anew() -> None:
    grid = Grid(1, 5)  # a mine in the middle
    assert opened(grid, 4, 1 << 2, 0) == {4: 0, 3: 1}
    assert opened(grid, 4, 1 << 2, 1 << 3) == {4: 0}


@pytest.mark.parametrize("num_mines", [2, 3, 4])
def test_what_is_deduced_holds_in_every_layout_that_fits(num_mines: int) -> None:
    """Every deduction is checked against all sets of mines that give the same numbers."""
    deduced = 0
    for grid, mines, start in boards(40, 4, 4, num_mines):
        numbers = opened(grid, start, mines, 0)
        knowledge = Knowledge(grid, num_mines, numbers)
        fitting = layouts(grid, numbers, num_mines)
        assert mines in fitting
        for other in fitting:
            assert not other & knowledge.safe and other & knowledge.mines == knowledge.mines
        deduced += bool(knowledge.safe)
    assert deduced > 20


def test_most_certain_facts_are_deduced() -> None:
    """The rules are not complete, but on small boards they miss little of what enumeration proves safe."""
    proved = found = 0
    for grid, mines, start in boards(80, 4, 5, 4):
        numbers = opened(grid, start, mines, 0)
        free = grid.board & ~set_of(list(numbers))
        for other in layouts(grid, numbers, 4):
            free &= ~other
        proved += bool(free)
        found += bool(Knowledge(grid, 4, numbers).safe)
    assert 0.9 * proved <= found <= proved and proved > 40


def test_numbers_of_a_pair_tell_what_neither_tells_alone() -> None:
    """1 2 1 over three closed cells: the mines are under the ones."""
    grid = Grid(2, 3)
    knowledge = Knowledge(grid, 2, {0: 1, 1: 2, 2: 1})
    assert list(cells_of(knowledge.safe)) == [5] and not knowledge.mines & ~set_of([4, 6])


def test_number_of_all_mines_is_used() -> None:
    """A closed cell far from every number is safe only because all mines are known."""
    grid = Grid(1, 5)
    assert list(cells_of(Knowledge(grid, 1, {0: 1}).safe)) == [2, 3, 4]
    assert not Knowledge(grid, 2, {0: 1}).safe


@pytest.mark.parametrize(("rows", "columns", "num_mines"), [(6, 6, 5), (8, 8, 10), (12, 12, 24)])
def test_a_solvable_board_is_opened_by_deduction_in_any_order(rows: int, columns: int, num_mines: int) -> None:
    """What the generator promises, the deductions from the numbers alone must keep: here cell by cell."""
    generator = np.random.default_rng(0)
    solved = 0
    for grid, mines, start in boards(30, rows, columns, num_mines):
        numbers = opened(grid, start, mines, 0)
        while len(numbers) < len(grid.cells) - num_mines:
            safe = list(cells_of(Knowledge(grid, num_mines, numbers).safe))
            if not safe:
                break
            cell = safe[int(generator.integers(len(safe)))]
            assert not mines >> cell & 1
            numbers.update(opened(grid, cell, mines, set_of(list(numbers))))
        is_open = len(numbers) == len(grid.cells) - num_mines
        assert is_open == solvable(grid, mines, start)
        solved += is_open
    assert 8 < solved < 30


def test_a_coin_toss_is_not_solvable() -> None:
    """A mine in one of two corner cells that no number tells apart."""
    grid = Grid(2, 5)
    assert not solvable(grid, 1 << grid.cells[4], grid.cells[0])
    assert solvable(Grid(1, 5), 1 << 4, 0)


def test_other_mines_fit_the_numbers_and_differ_where_they_can() -> None:
    generator = np.random.default_rng(0)
    changed = 0
    for grid, mines, start in boards(60, 8, 8, 10):
        numbers = opened(grid, start, mines, 0)
        other = other_mines(generator, grid, numbers, 10)
        assert other is not None and other.bit_count() == 10 and not other & ~grid.board
        assert not any(other >> cell & 1 for cell in numbers)
        assert all((grid.near[cell] & other).bit_count() == number for cell, number in numbers.items())
        changed += other != mines
    assert changed > 50


def test_all_fitting_layouts_can_come_up() -> None:
    generator = np.random.default_rng(0)
    for grid, mines, start in boards(10, 4, 4, 3):
        numbers = opened(grid, start, mines, 0)
        fitting = layouts(grid, numbers, 3)
        assert {other_mines(generator, grid, numbers, 3) for _ in range(60 * len(fitting))} == set(fitting)


def test_numbers_that_contradict_each_other_have_no_layout() -> None:
    assert other_mines(np.random.default_rng(0), Grid(1, 3), {0: 0, 2: 1}, 1) is None


def test_the_best_guess_is_the_cell_with_the_least_share() -> None:
    """Left of the 1 are two cells for one mine; the others share one mine among five."""
    knowledge = Knowledge(Grid(1, 8), 2, {1: 1})
    assert not knowledge.safe and knowledge.best_guess() == 3
    with pytest.raises(ValueError, match="every cell is open or decided"):
        Knowledge(Grid(1, 2), 1, {0: 1}).best_guess()


def test_drawn_mines_keep_away_from_the_first_cell_and_are_equally_likely() -> None:
    """On 4 x 4 cells a first cell in a corner leaves 12 others, each with a mine in a quarter of the draws."""
    grid, generator = Grid(4, 4), np.random.default_rng(0)
    counts, firsts = dict.fromkeys(grid.cells, 0), dict.fromkeys(grid.cells, 0)
    for _ in range(16_000):
        start, mines = draw_mines(generator, grid, 3)
        firsts[start] += 1
        assert mines.bit_count() == 3 and not mines & grid.box(1 << start) and not mines & ~grid.board
        if start == 0:
            for cell in cells_of(mines):
                counts[cell] += 1
    assert all(abs(count - 1000) < 150 for count in firsts.values())  # standard deviation 31
    share = [count / firsts[0] for count in counts.values() if count]
    assert len(share) == 12 and all(abs(found - 0.25) < 0.06 for found in share)  # standard deviation 0.014


def test_a_set_of_cells_is_taken_apart_again() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        cells = sorted({int(cell) for cell in generator.integers(400, size=30)})
        assert list(cells_of(set_of(cells))) == cells
    assert list(cells_of(0)) == [] and set_of([]) == 0
