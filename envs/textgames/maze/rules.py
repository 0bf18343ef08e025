"""Random mazes, as pure functions on text.

A maze is a square of symbols with an odd number of cells a side: ``#`` wall, ``_`` floor, one line per row. The cells
of odd row and odd column are rooms, always floor; a cell between two rooms is a door or a wall; everything else is
wall. Cells are numbered by their place in the text, line breaks included, so that a neighbour is a fixed offset away.

A perfect maze has exactly one way between any two rooms. It is made by a walk that turns back where it cannot go on
(depth-first search in random order). Loops are doors opened beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np

MOVES = ("up", "down", "left", "right")
_ORDERS = tuple(permutations(range(4)))


def offsets(size: int) -> dict[str, int]:
    """Return the distance in the text from a cell to its neighbour, for each move.

    >>> offsets(7)
    {'up': -8, 'down': 8, 'left': -1, 'right': 1}
    """
    return {"up": -size - 1, "down": size + 1, "left": -1, "right": 1}


@lru_cache(maxsize=64)
def rooms(size: int) -> tuple[int, ...]:
    """Return the rooms of a maze, row by row."""
    return tuple(row * (size + 1) + column for row in range(1, size, 2) for column in range(1, size, 2))


@lru_cache(maxsize=64)
def doors(size: int) -> dict[int, tuple[int, int]]:
    """Return every cell between two rooms, with these rooms."""
    found = {}
    for room in rooms(size):
        for step in (1, size + 1):
            if room + 2 * step in rooms(size):
                found[room + step] = room, room + 2 * step
    return found


@lru_cache(maxsize=64)
def _rock(size: int) -> tuple[str, ...]:
    """Return the symbols of a maze without doors."""
    symbols = list("\n".join(["#" * size] * size))
    for room in rooms(size):
        symbols[room] = "_"
    return tuple(symbols)


@lru_cache(maxsize=64)
def all_open(size: int) -> str:
    """Return the maze with every door open."""
    symbols = list(_rock(size))
    for door in doors(size):
        symbols[door] = "_"
    return "".join(symbols)


@lru_cache(maxsize=64)
def _ways(size: int) -> dict[int, tuple[tuple[tuple[int, int], ...], ...]]:
    """Return for each room and each order of the four directions the pairs of next room and door."""
    inside = set(rooms(size))
    deltas = tuple(offsets(size).values())
    ways = {}
    for room in rooms(size):
        near = [(room + 2 * delta, room + delta) for delta in deltas]
        ways[room] = tuple(tuple(near[way] for way in order if near[way][0] in inside) for order in _ORDERS)
    return ways


def carve(generator: np.random.Generator, size: int, num_loops: int = 0) -> str:
    """Return a random maze.

    Args:
        generator: Source of randomness.
        size: Cells along one side, odd.
        num_loops: Doors that are open beyond those of a perfect maze.
    """
    ways, every = _ways(size), rooms(size)
    randoms = generator.integers(len(_ORDERS) * len(every), size=len(every)).tolist()
    symbols = list(_rock(size))
    room = every[randoms[0] // len(_ORDERS)]
    waiting, seen = [iter(ways[room][randoms.pop() % len(_ORDERS)])], {room}
    while waiting:
        for near, door in waiting[-1]:
            if near not in seen:
                seen.add(near)
                symbols[door] = "_"
                if len(seen) == len(every):
                    waiting.clear()
                else:
                    waiting.append(iter(ways[near][randoms.pop() % len(_ORDERS)]))
                break
        else:
            waiting.pop()
    if num_loops:
        shut = [door for door in doors(size) if symbols[door] == "#"]
        for index in generator.choice(len(shut), num_loops, replace=False).tolist():
            symbols[shut[index]] = "_"
    return "".join(symbols)


def most_loops(size: int) -> int:
    """Return how many doors a perfect maze leaves shut.

    >>> most_loops(7)
    4
    """
    return len(doors(size)) - len(rooms(size)) + 1


def distances(maze: Sequence[str], origin: int, size: int) -> dict[int, int]:
    r"""Return the moves from ``origin`` to every floor cell that can be reached.

    Args:
        maze: The symbols; everything but ``_`` blocks.
        origin: First cell, whatever its symbol.
        size: Cells along one side.

    >>> distances("####\n#__#\n##_#\n####", 6, 4)
    {6: 0, 7: 1, 12: 2}
    """
    up, down = -size - 1, size + 1
    found = {origin: 0}
    queue = [origin]
    for cell in queue:
        away = found[cell] + 1
        for near in (cell + up, cell + down, cell - 1, cell + 1):
            if maze[near] == "_" and near not in found:
                found[near] = away
                queue.append(near)
    return found


def first_move(maze: Sequence[str], origin: int, goals: Iterable[int], size: int) -> str | None:
    r"""Return the first move of a shortest way over floor cells to the nearest goal, None if there is none.

    Among equally near goals the one found first counts, with ``MOVES`` in order.

    >>> first_move("####\n#__#\n##_#\n####", 6, [12], 4)
    'right'
    """
    wanted = frozenset(goals)
    came_from: dict[int, tuple[int, str]] = {origin: (origin, "")}
    queue = [origin]
    for cell in queue:
        if cell in wanted and cell != origin:
            while came_from[cell][0] != origin:
                cell = came_from[cell][0]
            return came_from[cell][1]
        for move, delta in offsets(size).items():
            near = cell + delta
            if (maze[near] == "_" or near in wanted) and near not in came_from:
                came_from[near] = cell, move
                queue.append(near)
    return None


def frontier(known: Sequence[str], size: int) -> list[int]:
    """Return the known floor cells that touch an unknown cell, which is written ``?``."""
    near = tuple(offsets(size).values())
    return [cell for cell, symbol in enumerate(known) if symbol == "_" and any(known[cell + d] == "?" for d in near)]


def refill(generator: np.random.Generator, known: Sequence[str], size: int, num_doors: int) -> str:
    """Return a random maze that agrees with what is known of another one.

    Every room is connected, as always: the known doors are joined by unknown ones in random order wherever they join
    two parts (Kruskal 1956), then further unknown ones are opened until ``num_doors`` are.

    Args:
        generator: Source of randomness.
        known: The symbols, ``?`` where nothing is known.
        size: Cells along one side.
        num_doors: Open doors that the maze has.
    """
    part = {room: room for room in rooms(size)}

    def root(room: int) -> int:
        while part[room] != room:
            room = part[room]
        return room

    between = doors(size)
    opened = [door for door in between if known[door] not in "#?"]
    unknown = [door for door in between if known[door] == "?"]
    for door in opened:
        one, other = between[door]
        part[root(one)] = root(other)
    spare = []
    for index in generator.permutation(len(unknown)).tolist():
        one, other = map(root, between[unknown[index]])
        if one != other:
            part[one] = other
            opened.append(unknown[index])
        else:
            spare.append(unknown[index])
    opened += spare[: num_doors - len(opened)]
    symbols = list(_rock(size))
    for door in opened:
        symbols[door] = "_"
    return "".join(symbols)
