"""The sliding-tile puzzle: rules, random boards and the solver against breadth-first search over all boards."""

from collections import Counter
from functools import cache
from itertools import compress, permutations

import numpy as np
import pytest

from turngym.envs.textgames.fifteen_puzzle.rules import (
    MOST_MOVES,
    MOVES,
    Board,
    board_text,
    count_boards,
    draw_any,
    draw_scrambled,
    is_solvable,
    slide,
    slides,
    solved,
    total_distance,
)
from turngym.envs.textgames.fifteen_puzzle.solver import estimate, line_conflicts, shortest, solve

ENOUGH = 10**9


@cache
def all_lengths(size: int, most: int) -> dict[Board, int]:
    """Return the length of a shortest solution of every board that has one of at most ``most`` moves."""
    lengths = {solved(size): 0}
    queue = [solved(size)]
    for board in queue:
        if lengths[board] < most:
            for move in slides(size)[board.index(0)]:
                after = slide(board, move, size)
                if after not in lengths:
                    lengths[after] = lengths[board] + 1
                    queue.append(after)
    return lengths


def play(board: Board, moves: list[str], size: int) -> Board:
    for move in moves:
        board = slide(board, move, size)
    return board


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_move_slides_the_tile_on_the_far_side_into_the_gap(size: int) -> None:
    towards = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}  # from the gap to the tile
    for gap in range(size**2):
        row, column = divmod(gap, size)
        expected = {}
        for move in MOVES:
            line, place = row + towards[move][0], column + towards[move][1]
            if 0 <= line < size and 0 <= place < size:
                expected[move] = line * size + place
        assert slides(size)[gap] == expected


def test_a_move_and_its_opposite_cancel() -> None:
    board = draw_any(np.random.default_rng(0), 4)
    opposite = {"up": "down", "down": "up", "left": "right", "right": "left"}
    for move in slides(4)[board.index(0)]:
        after = slide(board, move, 4)
        assert after != board and sorted(after) == sorted(board)
        assert slide(after, opposite[move], 4) == board


def test_exactly_half_of_all_small_boards_can_be_solved() -> None:
    can = {board for board in permutations(range(4)) if is_solvable(board, 2)}
    assert can == set(all_lengths(2, ENOUGH)) and len(can) == 12


def test_solvable_boards_of_nine_are_those_that_moves_reach() -> None:
    generator = np.random.default_rng(0)
    reached = all_lengths(3, 12)
    assert all(is_solvable(board, 3) for board in list(reached)[:500])
    swapped = [(board[1], board[0], *board[2:]) for board in list(reached)[:500] if board[0] and board[1]]
    assert swapped and not any(is_solvable(board, 3) for board in swapped)
    share = np.mean([is_solvable(generator.permutation(9).tolist(), 3) for _ in range(1000)])
    assert abs(share - 0.5) < 0.08


def test_text_is_aligned_and_shows_the_gap() -> None:
    board = (5, 1, 2, 3, 9, 6, 7, 4, 13, 10, 0, 8, 14, 15, 11, 12)
    assert board_text(board, 4) == " 5  1  2  3\n 9  6  7  4\n13 10  _  8\n14 15 11 12"


def test_total_distance_is_summed_over_tiles() -> None:
    for _ in range(20):
        board = draw_any(np.random.default_rng(_), 4)
        expected = 0
        for place, tile in enumerate(board):
            if tile:
                expected += abs(place // 4 - (tile - 1) // 4) + abs(place % 4 - (tile - 1) % 4)
        assert total_distance(board, 4) == expected


def test_every_solvable_small_board_is_drawn_equally_often() -> None:
    generator = np.random.default_rng(0)
    seen = Counter(draw_any(generator, 2) for _ in range(2200))  # 11 boards, 200 each, standard deviation 13.5
    assert len(seen) == 11 and solved(2) not in seen
    assert all(abs(count - 200) < 70 for count in seen.values())


def test_scrambled_boards_are_at_most_that_far() -> None:
    generator = np.random.default_rng(0)
    lengths = all_lengths(3, 12)
    drawn = [draw_scrambled(generator, 3, 12) for _ in range(300)]
    assert all(0 < lengths[board] <= 12 for board in drawn)
    assert max(lengths[board] for board in drawn) == 12, "no move takes back the one before it"


@pytest.mark.parametrize(("size", "num_moves"), [(2, 1), (2, 5), (3, 1), (3, 4), (4, 3)])
def test_counted_boards_are_the_ones_that_come_up(size: int, num_moves: int) -> None:
    generator = np.random.default_rng(0)
    drawn = {draw_scrambled(generator, size, num_moves) for _ in range(1500)}
    assert len(drawn) == count_boards(size, num_moves)


def test_many_boards_are_not_counted() -> None:
    assert count_boards(3, None) is None and count_boards(4, 60) is None


def test_known_most_moves_are_right() -> None:
    assert max(all_lengths(2, ENOUGH).values()) == MOST_MOVES[2]


def test_the_estimate_never_exceeds_the_truth() -> None:
    for board, length in all_lengths(3, 16).items():
        assert estimate(board, 3) <= length
        assert (estimate(board, 3) - length) % 2 == 0


def test_line_conflicts_are_the_fewest_tiles_that_must_leave() -> None:
    """Brute force: the largest part of the tiles at home in a line that stand in order may stay."""
    for line in permutations(range(1, 6), 4):
        home = [tile for tile in line if tile <= 4]
        stay = max(sum(kept) for kept in np.ndindex(*[2] * len(home)) if in_order(list(compress(home, kept))))
        board = [*line, *[tile for tile in range(16) if tile not in line]]
        assert line_conflicts(board, 4, 0, True) == len(home) - stay
        turned = np.array(board).reshape(4, 4).T.flatten().tolist()
        columns = [1 + 4 * (tile - 1) if 1 <= tile <= 4 else 0 if tile == 0 else 2 for tile in turned]
        assert line_conflicts(columns, 4, 0, False) == len(home) - stay


def in_order(tiles: list[int]) -> bool:
    return tiles == sorted(tiles)


def test_without_conflicts_the_estimate_is_the_distance_alone() -> None:
    """Negative oracle: two tiles that stand in each other's way cost two moves more."""
    assert estimate((2, 1, 3, 4, 5, 6, 7, 8, 0), 3) == total_distance((2, 1, 3, 4, 5, 6, 7, 8, 0), 3) + 2
    assert estimate((1, 2, 3, 4, 5, 6, 7, 0, 8), 3) == 1


def test_solver_finds_shortest_ways_on_all_near_boards() -> None:
    boards = list(all_lengths(3, 18).items())
    for board, length in boards[:: len(boards) // 150]:
        moves = shortest(board, 3, ENOUGH)
        assert moves is not None and len(moves) == length and play(board, moves, 3) == solved(3)


def test_solver_copes_with_a_farthest_board_of_nine() -> None:
    board = (8, 6, 7, 2, 5, 4, 3, 0, 1)
    moves = solve(board, 3)
    assert len(moves) == MOST_MOVES[3] and play(board, moves, 3) == solved(3)


def test_small_boards_are_solved_shortest() -> None:
    for board, length in all_lengths(2, ENOUGH).items():
        assert len(solve(board, 2)) == length


def test_search_gives_up_after_its_steps() -> None:
    assert shortest((8, 6, 7, 2, 5, 4, 3, 0, 1), 3, 50) is None


@pytest.mark.parametrize(("size", "count", "most"), [(4, 6, 160), (5, 3, 260)])
def test_large_boards_are_solved_row_by_row(size: int, count: int, most: int) -> None:
    generator = np.random.default_rng(size)
    for _ in range(count):
        board = draw_any(generator, size)
        moves = solve(board, size)
        assert len(moves) <= most and play(board, moves, size) == solved(size)
