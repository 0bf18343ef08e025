"""Random Sokoban rooms that can be solved: carved from rock, then played backwards from the solved state.

Backward play pulls boxes off their goals, so whatever state it reaches leads back to the solved one. The search goes
level by level; as long as no level is thinned out, the level of a state is the length of its shortest solution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from turngym.envs.textgames.sokoban.rules import Room, State
from turngym.errors import ConfigError

_BEAM = 400
_ROOMS = 1000
_STATES_PER_ROOM = 16


def carve(generator: np.random.Generator, size: int, fewest: int) -> frozenset[int]:
    """Return the floor of a random connected room.

    A corridor grows from a random cell: mostly from where it grew last, sometimes from anywhere. It stops at a random
    share of the inside, so some rooms are halls and others are full of inner walls.

    Args:
        generator: Source of randomness.
        size: Cells along one side, walls included.
        fewest: Least number of floor cells.
    """
    inside = (size - 2) ** 2
    floor_size = int(generator.integers(max(fewest, inside // 2), inside + 1))
    randoms = iter(generator.random(2 * inside * 5).tolist())
    start = int(generator.integers(inside))
    rock = {row * size + column for row in range(1, size - 1) for column in range(1, size - 1)}
    frontier = [(start // (size - 2) + 1) * size + start % (size - 2) + 1]
    floor: set[int] = set()
    while len(floor) < floor_size:
        index = int(next(randoms) * len(frontier)) if next(randoms) < 0.5 else -1
        cell = frontier.pop(index)
        if cell not in rock:
            continue
        rock.discard(cell)
        floor.add(cell)
        around = [cell - size, cell + size, cell - 1, cell + 1]
        turn = int(next(randoms) * 4)
        frontier += [near for near in around[turn:] + around[:turn] if near in rock]
    return frozenset(floor)


def predecessors(room: Room, state: State) -> Iterator[State]:
    """Yield the states from which one move leads to ``state``."""
    player, boxes = state
    for delta in room.deltas.values():
        origin = player - delta
        if origin in room.floor and origin not in boxes:
            yield State(origin, boxes)
            if player + delta in boxes:
                yield State(origin, (boxes - {player + delta}) | {player})


def backward_levels(
    room: Room, deepest: int, beam: int | None = None, generator: np.random.Generator | None = None
) -> list[list[State]]:
    """Return the states by number of moves to the solved state; level 0 is the solved states.

    Args:
        room: The room.
        deepest: Last level wanted.
        beam: States of a level from which the search continues, drawn at random; None for all of them. Below a level
            with more states, the level of a state is an upper bound of its shortest solution.
        generator: Source of randomness, needed with ``beam``.
    """
    levels = [[State(player, room.goals) for player in sorted(room.floor - room.goals)]]
    seen = set(levels[0])
    while levels[-1] and len(levels) <= deepest:
        level = levels[-1]
        if beam is not None and generator is not None and len(level) > beam:
            level = [level[index] for index in generator.choice(len(level), beam, replace=False).tolist()]
        following = []
        for state in level:
            for before in predecessors(room, state):
                if before not in seen:
                    seen.add(before)
                    following.append(before)
        levels.append(following)
    return levels if levels[-1] else levels[:-1]


class RoomSource:
    """Draws pairs of room and first state; keeps a room for a few draws, because searching it is what costs.

    Args:
        size: Cells along one side, walls included.
        boxes: Number of boxes.
        min_moves: Fewest moves of the known solution.
        max_moves: Most moves of the known solution.
    """

    def __init__(self, size: int, boxes: int, min_moves: int, max_moves: int) -> None:
        self.size = size
        self.boxes = boxes
        self.min_moves = min_moves
        self.max_moves = max_moves
        self._kept: tuple[Room, list[list[State]]] | None = None
        self._draws_left = 0

    def forget(self) -> None:
        """Drop the kept room, so that the next draw depends on the generator alone."""
        self._kept = None

    def draw(self, generator: np.random.Generator) -> tuple[Room, State]:
        """Return a room and a state of it: a random level, then a random state of that level.

        Raises:
            ConfigError: No room has a solution of the wanted length.
        """
        if self._kept is None or not self._draws_left:
            self._kept = self._search(generator)
            self._draws_left = _STATES_PER_ROOM
        self._draws_left -= 1
        room, levels = self._kept
        level = levels[int(generator.integers(len(levels)))]
        return room, level[int(generator.integers(len(level)))]

    def _search(self, generator: np.random.Generator) -> tuple[Room, list[list[State]]]:
        for _ in range(_ROOMS):
            floor = carve(generator, self.size, 2 * self.boxes + 1)
            goals = generator.choice(sorted(floor), self.boxes, replace=False).tolist()
            room = Room(self.size, floor, frozenset(goals))
            levels = backward_levels(room, self.max_moves, _BEAM, generator)[self.min_moves :]
            if levels:
                return room, levels
        raise ConfigError(
            f"no room of size {self.size} with {self.boxes} boxes and a solution of {self.min_moves} to "
            f"{self.max_moves} moves was found in {_ROOMS} tries: "
            f"pass a larger size, fewer boxes or a smaller min_moves."
        )
