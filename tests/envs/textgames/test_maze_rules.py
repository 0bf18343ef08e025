"""Mazes: perfect unless loops are asked for, every one reachable, and searches equal to slow ones."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from turngym.envs.textgames.maze.rules import (
    MOVES,
    all_open,
    carve,
    distances,
    doors,
    first_move,
    frontier,
    most_loops,
    offsets,
    refill,
    rooms,
)

STEPS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def mazes(count: int, size: int, num_loops: int = 0) -> list[str]:
    generator = np.random.default_rng(size)
    return [carve(generator, size, num_loops) for _ in range(count)]


def open_doors(maze: str, size: int) -> list[int]:
    return [door for door in doors(size) if maze[door] == "_"]


@pytest.mark.parametrize("size", [3, 7, 12])
def test_offsets_lead_to_the_neighbour_of_each_move(size: int) -> None:
    for move, (down, right) in STEPS.items():
        assert offsets(size)[move] == down * (size + 1) + right
    assert tuple(offsets(size)) == MOVES


@pytest.mark.parametrize("size", [7, 9, 13])
def test_rooms_and_doors_are_a_grid(size: int) -> None:
    side = size // 2
    assert len(rooms(size)) == side**2 and len(doors(size)) == 2 * side * (side - 1)
    for door, (one, other) in doors(size).items():
        assert one + other == 2 * door and {one, other} <= set(rooms(size))


@pytest.mark.parametrize("size", [7, 11, 15])
def test_a_perfect_maze_is_a_tree_over_its_rooms(size: int) -> None:
    for maze in mazes(30, size):
        lines = maze.split("\n")
        assert len(lines) == size and all(len(line) == size for line in lines) and set(maze) == set("#_\n")
        assert set(lines[0] + lines[-1] + "".join(line[0] + line[-1] for line in lines)) == {"#"}
        assert len(open_doors(maze, size)) == len(rooms(size)) - 1
        assert set(rooms(size)) <= set(distances(maze, rooms(size)[0], size))


@pytest.mark.parametrize("num_loops", [1, 4])
def test_loops_are_doors_beyond_the_tree(num_loops: int) -> None:
    for maze in mazes(20, 7, num_loops):
        assert len(open_doors(maze, 7)) == len(rooms(7)) - 1 + num_loops
    assert most_loops(7) == 4
    assert all(maze == all_open(7) for maze in mazes(3, 7, 4))


def is_grown_by_a_walk(maze: str) -> bool:
    """Return whether a walk that turns back only where it must can have made the maze.

    A tree is such a walk's, begun at some root, exactly if of any two neighbouring rooms one lies on the other's way
    from the root: else the walk would have entered the second from the first.
    """
    away = {room: distances(maze, room, 7) for room in rooms(7)}

    def is_on_the_way(root: int, one: int, other: int) -> bool:
        return abs(away[root][one] - away[root][other]) == away[one][other]

    return any(all(is_on_the_way(root, *pair) for pair in doors(7).values()) for root in rooms(7))


def test_exactly_the_mazes_that_a_walk_can_make_come_up() -> None:
    """A grid of 3 x 3 rooms has 192 spanning trees; a walk can make some of them."""
    trees = []
    for closed in combinations(doors(7), 4):
        maze = "".join("#" if cell in closed else symbol for cell, symbol in enumerate(all_open(7)))
        if set(rooms(7)) <= set(distances(maze, rooms(7)[0], 7)):
            trees.append(maze)
    assert len(trees) == 192
    assert set(mazes(3000, 7)) == {maze for maze in trees if is_grown_by_a_walk(maze)}


def test_distances_agree_with_relaxation_over_all_cells() -> None:
    for maze in mazes(10, 9, 3):
        floor = [cell for cell, symbol in enumerate(maze) if symbol == "_"]
        away = {cell: 0.0 if cell == floor[5] else math.inf for cell in floor}
        for _ in floor:
            for cell in floor:
                near = [away.get(cell + delta, math.inf) + 1 for delta in offsets(9).values()]
                away[cell] = min(away[cell], *near)
        assert distances(maze, floor[5], 9) == away


def test_the_first_move_is_one_of_a_shortest_way() -> None:
    for maze in mazes(10, 9, 4):
        goal = rooms(9)[-1]
        away = distances(maze, goal, 9)
        for cell in set(away) - {goal}:
            move = first_move(maze, cell, [goal], 9)
            assert move is not None and away[cell + offsets(9)[move]] == away[cell] - 1


def test_the_nearest_of_several_goals_is_taken() -> None:
    maze = "#######\n#_____#\n#######"
    assert first_move(maze, 11, [9], 7) == "left" and first_move(maze, 11, [9, 12], 7) == "right"
    assert first_move(maze, 11, [11], 7) is None and first_move(maze, 11, [], 7) is None


def test_a_goal_behind_walls_has_no_first_move() -> None:
    assert first_move("#####\n#_#_#\n#####", 7, [9], 5) is None


def test_the_frontier_is_known_floor_next_to_the_unknown() -> None:
    assert frontier("?????\n#__??\n#____\n#####", 5) == [7, 8, 15, 16]


@pytest.mark.parametrize("num_loops", [0, 3])
def test_a_refilled_maze_agrees_with_what_was_seen(num_loops: int) -> None:
    generator = np.random.default_rng(0)
    changed = 0
    for maze in mazes(60, 11, num_loops):
        hidden = generator.random(len(maze)) < generator.random()
        known = ["\n" if symbol == "\n" else "?" if hide else symbol for symbol, hide in zip(maze, hidden, strict=True)]
        other = refill(generator, known, 11, len(open_doors(maze, 11)))
        assert all(symbol in ("?", new) for symbol, new in zip(known, other, strict=True))
        assert len(open_doors(other, 11)) == len(open_doors(maze, 11))
        assert set(rooms(11)) <= set(distances(other, rooms(11)[0], 11))
        changed += other != maze
    assert changed > 30


def test_a_maze_of_which_nothing_is_known_is_refilled_at_random() -> None:
    generator = np.random.default_rng(1)
    known = ["\n" if symbol == "\n" else "?" for symbol in all_open(7)]
    seen = Counter(refill(generator, known, 7, 8) for _ in range(600))
    assert len(seen) > 120 and max(seen.values()) < 30
