"""Sudoku: full grids keep the rules, puzzles have one solution that two rules find, and search agrees with counting."""

from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.sudoku.rules import (
    BOXES,
    Grid,
    dig,
    free_values,
    grid_text,
    layout,
    next_logical,
    parse_grid,
    random_grid,
    solutions,
    taken,
)
from turngym.seeding import stream

SIZES = tuple(BOXES)


def units(size: int) -> list[list[int]]:
    """Return every row, column and box, as written on paper."""
    height, width = BOXES[size]
    rows = [[row * size + column for column in range(size)] for row in range(size)]
    columns = [[row * size + column for row in range(size)] for column in range(size)]
    boxes = [
        [(top + i) * size + left + j for i in range(height) for j in range(width)]
        for top in range(0, size, height)
        for left in range(0, size, width)
    ]
    return rows + columns + boxes


def keeps_the_rules(grid: Grid, size: int) -> bool:
    for unit in units(size):
        values = [grid[cell] for cell in unit if grid[cell]]
        if len(values) != len(set(values)):
            return False
    return True


def puzzle(size: int, seed: int, clues: int = 0) -> tuple[list[int], list[int]]:
    generator = stream("test sudoku", size, seed)
    solution = random_grid(generator, size)
    return dig(solution, generator.permutation(size * size).tolist(), clues, size), solution


@pytest.mark.parametrize("size", SIZES)
def test_peers_are_the_cells_that_share_a_unit(size: int) -> None:
    shape = layout(size)
    for cell in range(size * size):
        shared = [set(unit) - {cell} for unit in units(size) if cell in unit]
        assert [set(unit) for unit in shape.units[cell]] == shared
        assert set(shape.peers[cell]) == set().union(*shared)
        assert divmod(cell, size) == (shape.row[cell], shape.column[cell])
    assert len({len(peers) for peers in shape.peers}) == 1


@pytest.mark.parametrize("size", SIZES)
def test_random_grids_are_full_and_keep_the_rules(size: int) -> None:
    grids = [random_grid(stream("grids", size, seed), size) for seed in range(40)]
    for grid in grids:
        assert len(grid) == size * size and set(grid) == set(range(1, size + 1)) and keeps_the_rules(grid, size)
    assert len({tuple(grid) for grid in grids}) > 30


def test_all_small_grids_come_up() -> None:
    """There are 288 grids of four by four; nearly as often the one as the other."""
    generator = stream("all small grids")
    counts = Counter(tuple(random_grid(generator, 4)) for _ in range(288 * 12))
    assert len(counts) == 288 and max(counts.values()) < 40


@pytest.mark.parametrize("size", SIZES)
def test_values_that_are_taken_and_free_are_those_that_break_no_rule(size: int) -> None:
    """Oracle: put the value in and look."""
    for seed in range(3):
        grid, _ = puzzle(size, seed)
        held, free = taken(grid, size), free_values(grid, size)
        for cell, value in product(range(size * size), range(1, size + 1)):
            if not grid[cell]:
                fits = keeps_the_rules([*grid[:cell], value, *grid[cell + 1 :]], size)
                assert fits == (value in free[cell]) == (not held[cell] >> (value - 1) & 1)


@pytest.mark.parametrize(("size", "tasks"), [(4, 60), (6, 25), (9, 8)])
def test_puzzles_have_one_solution(size: int, tasks: int) -> None:
    for seed in range(tasks):
        grid, solution = puzzle(size, seed)
        assert solutions(grid, size) == [solution]
        assert all(clue in (0, value) for clue, value in zip(grid, solution, strict=True))


@pytest.mark.parametrize(("size", "tasks"), [(4, 100), (6, 60), (9, 30)])
def test_two_rules_solve_every_puzzle(size: int, tasks: int) -> None:
    for seed in range(tasks):
        grid, solution = puzzle(size, seed)
        for _ in range(grid.count(0)):
            found = next_logical(grid, size)
            assert found is not None
            cell, value = found
            assert not grid[cell] and value == solution[cell]
            grid[cell] = value
        assert grid == solution and next_logical(grid, size) is None


@settings(max_examples=40)
@given(st.sampled_from(SIZES), st.integers(0, 20), st.randoms(use_true_random=False))
def test_the_two_rules_never_get_stuck_on_the_way(size: int, seed: int, chooser: Random) -> None:
    """Whichever cells are filled rightly first, one of the rules gives another."""
    grid, solution = puzzle(size, seed)
    empty = [cell for cell, value in enumerate(grid) if not value]
    chooser.shuffle(empty)
    for cell in empty:
        found = next_logical(grid, size)
        assert found is not None and solution[found[0]] == found[1]
        grid[cell] = solution[cell]


@pytest.mark.parametrize("size", SIZES)
def test_digging_stops_at_the_clues_asked_for(size: int) -> None:
    asked = size * size // 2 + 2
    full, _ = puzzle(size, 1, clues=size * size)
    grid, solution = puzzle(size, 1, clues=asked)
    assert full == solution and len(grid) - grid.count(0) == asked


@pytest.mark.parametrize("size", SIZES)
def test_no_clue_that_is_left_can_be_put_back_by_the_rules(size: int) -> None:
    """Negative oracle: digging did not stop early. A clue was kept because the rules did not give it back then, and
    with fewer clues they give still less."""
    for seed in range(4):
        grid, solution = puzzle(size, seed)
        for cell in [cell for cell, value in enumerate(grid) if value]:
            without = [*grid[:cell], 0, *grid[cell + 1 :]]
            free = free_values(without, size)
            assert len(free[cell]) > 1
            for unit in (unit for unit in units(size) if cell in unit):
                assert any(solution[cell] in free[other] for other in unit if other != cell and not without[other])


def test_search_counts_the_grids_of_four_by_four() -> None:
    assert len(solutions([0] * 16, 4, most=1000)) == 288
    assert len(solutions([1, 2, 3, 4] + [0] * 12, 4, most=1000)) == 288 // 24


def test_search_stops_at_the_number_asked_for_and_finds_none_where_there_is_none() -> None:
    assert len(solutions([0] * 81, 9, most=3)) == 3
    assert len(solutions([1, 2, 3, 0, 4, 0, 0, 0] + [0] * 8, 4, most=5)) == 5
    assert solutions([1, 2, 3, 0, 0, 0, 0, 4] + [0] * 8, 4) == []  # the corner needs a 4, and its column has it


def test_search_finds_what_trying_all_grids_finds() -> None:
    """Oracle: compare with all 288 grids."""
    every = solutions([0] * 16, 4, most=1000)
    assert all(keeps_the_rules(grid, 4) for grid in every)
    generator = stream("search")
    for _ in range(30):
        kept = generator.random(16) < 0.3
        hint = [value if keep else 0 for value, keep in zip(every[int(generator.integers(288))], kept, strict=True)]
        fitting = [grid for grid in every if all(clue in (0, value) for clue, value in zip(hint, grid, strict=True))]
        assert sorted(solutions(hint, 4, most=1000)) == sorted(fitting)


def test_rules_give_nothing_where_nothing_follows() -> None:
    assert next_logical([0] * 81, 9) is None
    assert next_logical([1, 2] + [0] * 14, 4) is None


def test_a_hidden_single_is_found() -> None:
    """The 1 of the upper right box has one place: its rows and columns are blocked elsewhere."""
    grid = [1, 0, 0, 0] + [0] * 8 + [0, 0, 1, 0]
    assert next_logical(grid, 4) == (7, 1)
    assert len(free_values(grid, 4)[7]) > 1, "it is not a naked single"


@pytest.mark.parametrize("size", SIZES)
def test_text_and_grid_are_the_same_thing(size: int) -> None:
    grid, _ = puzzle(size, 3)
    text = grid_text(grid, size)
    assert parse_grid(text) == grid and len(text.split("\n")) == size
    assert text.count(".") == grid.count(0)
