"""The rules of Frozen Lake, as pure functions on small records.

The lake is a square of cells: ice, holes and one goal. The player moves one cell up, down, left or right; a move off
the lake changes nothing. On slippery ice a move goes the intended way with probability 1/3 and to each of the two
sides with probability 1/3, as in Gymnasium's FrozenLake.

As text a lake is one line per row: ``_`` ice, ``O`` hole, ``G`` goal, ``P`` player, ``X`` player in a hole, ``√``
player at the goal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from turngym.errors import ConfigError

MOVES = ("up", "right", "down", "left")
"""In clockwise order, so that the neighbours of a move in this tuple are its two sides."""
SYMBOLS = "_OGPX√"
"""How ``grid_text`` writes the cells."""

_FEW = 1000  # fewer instances than this are counted one by one
_DRAWS = 10_000
_DISCOUNT = 0.99


@dataclass(frozen=True)
class Lake:
    """Constant state of an episode; cells are numbered row by row from 0.

    Args:
        size: Cells along one side.
        start: Cell where the player starts.
        goal: Cell to reach.
        holes: Cells to avoid.
    """

    size: int
    start: int
    goal: int
    holes: frozenset[int]

    @cached_property
    def distances(self) -> dict[int, int]:
        """Moves from each cell to the goal around the holes; cells without a way are absent."""
        distances = {self.goal: 0}
        queue, neighbours = [self.goal], _neighbours(self.size)
        for cell in queue:
            for near in neighbours[cell]:
                if near not in distances and near not in self.holes:
                    distances[near] = distances[cell] + 1
                    queue.append(near)
        return distances


def neighbour(size: int, cell: int, move: str) -> int:
    """Return the cell next to ``cell``, or ``cell`` itself at the edge of the lake.

    >>> [neighbour(4, 0, move) for move in MOVES]
    [0, 1, 4, 0]
    """
    row, column = divmod(cell, size)
    if move == "up":
        return cell - size if row else cell
    if move == "down":
        return cell + size if row < size - 1 else cell
    if move == "left":
        return cell - 1 if column else cell
    return cell + 1 if column < size - 1 else cell


@lru_cache(maxsize=64)
def _neighbours(size: int) -> list[list[int]]:
    return [[neighbour(size, cell, move) for move in MOVES] for cell in range(size**2)]


def slips(move: str) -> tuple[str, str, str]:
    """Return the three equally likely ways that a move on slippery ice goes.

    >>> slips("up")
    ('left', 'up', 'right')
    """
    index = MOVES.index(move)
    return MOVES[index - 1], move, MOVES[(index + 1) % 4]


def grid_text(lake: Lake, player: int) -> str:
    """Return the lake as lines of symbols.

    >>> print(grid_text(Lake(3, 0, 8, frozenset({4})), 1))
    _P_
    _O_
    __G
    """
    symbols = ["_"] * lake.size**2
    for hole in lake.holes:
        symbols[hole] = "O"
    symbols[lake.goal] = "G"
    symbols[player] = "X" if player in lake.holes else "√" if player == lake.goal else "P"
    text = "".join(symbols)
    return "\n".join([text[first : first + lake.size] for first in range(0, len(text), lake.size)])


def coordinate_text(lake: Lake, player: int) -> str:
    """Return the lake as one line of words and numbers.

    >>> coordinate_text(Lake(3, 0, 8, frozenset({4})), 1)
    'player 0 1 goal 2 2 hole 1 1'
    """
    size = lake.size
    holes = "".join([f" hole {hole // size} {hole % size}" for hole in sorted(lake.holes)])
    return f"player {player // size} {player % size} goal {lake.goal // size} {lake.goal % size}{holes}"


def parse_lake(text: str) -> Lake:
    """Return the lake whose first state ``grid_text`` wrote.

    Raises:
        ValueError: It is not a square, or has no player or no goal.
    """
    cells = text.replace("\n", "")
    size = math.isqrt(len(cells))
    if [len(row) for row in text.split("\n")] != [size] * size:
        raise ValueError(f"a lake is a square, got {text[:60]!r}")
    holes = frozenset(cell for cell, symbol in enumerate(cells) if symbol == "O")
    return Lake(size, cells.index("P"), cells.index("G"), holes)


def draw_lake(generator: np.random.Generator, size: int, num_holes: int, max_moves: int) -> Lake:
    """Return a random lake whose goal is at most ``max_moves`` moves away.

    Raises:
        ConfigError: None was found.
    """
    for _ in range(_DRAWS):
        start, goal, *holes = generator.permutation(size**2)[: num_holes + 2].tolist()
        lake = Lake(size, start, goal, frozenset(holes))
        if lake.distances.get(start, math.inf) <= max_moves:
            return lake
    raise ConfigError(
        f"no lake of size {size} with {num_holes} holes and a goal at most {max_moves} moves away was found: "
        f"pass a smaller hole_share or a larger max_turns."
    )


def count_lakes(size: int, num_holes: int, max_moves: int) -> int | None:
    """Return the number of lakes that ``draw_lake`` can return, None if there are many.

    >>> count_lakes(3, 0, 99)
    72
    """
    cells = size**2
    if cells * (cells - 1) * math.comb(cells - 2, num_holes) > _FEW:
        return None
    found = 0
    for start in range(cells):
        for goal in set(range(cells)) - {start}:
            for holes in combinations(set(range(cells)) - {start, goal}, num_holes):
                lake = Lake(size, start, goal, frozenset(holes))
                found += lake.distances.get(start, math.inf) <= max_moves
    return found


@lru_cache(maxsize=64)
def slippery_policy(lake: Lake) -> tuple[str, ...]:
    """Return the best move on slippery ice from each cell, by value iteration (Bellman 1957).

    Reaching the goal is worth 1 and nothing else is worth anything; a discount of 0.99 a turn prefers the shorter of
    two equally safe ways. Among equal moves the first of ``MOVES`` wins.
    """
    cells = range(lake.size**2)
    ways = np.array([[[neighbour(lake.size, cell, way) for way in slips(move)] for cell in cells] for move in MOVES])
    ends = np.array([cell == lake.goal or cell in lake.holes for cell in cells])
    values = np.array([float(cell == lake.goal) for cell in cells])
    change = 1.0
    while change > 1e-10:
        move_values = values[ways].mean(axis=2)
        improved = np.where(ends, values, _DISCOUNT * move_values.max(axis=0))
        change = float(np.abs(improved - values).max())
        values = improved
    best = np.round(values[ways].mean(axis=2), 8).argmax(axis=0)
    return tuple(MOVES[index] for index in best.tolist())
