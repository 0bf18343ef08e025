"""The rules of Sokoban, as pure functions on small records.

A room is a square of cells whose border is wall. Cells are numbered row by row from 0. The player moves one cell up,
down, left or right. Moving onto a box pushes it one cell further, if that cell is floor and holds no other box;
boxes are never pulled. The room is solved when every box stands on a goal.

As text a room is one line per row: ``#`` wall, ``_`` floor, ``O`` goal, ``X`` box, ``√`` box on a goal, ``P`` player,
``S`` player on a goal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from turngym.errors import ConfigError

MOVES = ("up", "down", "left", "right")
SYMBOLS = "#_OX√PS"


class State(NamedTuple):
    """Changing state of an episode.

    Args:
        player: Cell of the player.
        boxes: Cells of the boxes.
    """

    player: int
    boxes: frozenset[int]


@dataclass(frozen=True)
class Room:
    """Constant state of an episode.

    Args:
        size: Cells along one side, walls included.
        floor: Cells that are not walls.
        goals: Cells that want a box, as many as there are boxes.
    """

    size: int
    floor: frozenset[int]
    goals: frozenset[int]

    @cached_property
    def deltas(self) -> dict[str, int]:
        """Cell offset of each move."""
        return {"up": -self.size, "down": self.size, "left": -1, "right": 1}

    @cached_property
    def _cells(self) -> list[str]:
        """The symbols of the empty room, row by row, each row followed by a line break."""
        symbols = []
        for row in range(self.size):
            cells = range(row * self.size, (row + 1) * self.size)
            symbols += ["#" if c not in self.floor else "O" if c in self.goals else "_" for c in cells]
            symbols.append("\n")
        return symbols[:-1]

    @cached_property
    def _places(self) -> tuple[str, ...]:
        """``"row column"`` of each cell."""
        return tuple(f"{cell // self.size} {cell % self.size}" for cell in range(self.size**2))

    @cached_property
    def _fixed_places(self) -> str:
        """Goals and inner walls as words."""
        inner = range(1, self.size - 1)
        walls = [row * self.size + column for row in inner for column in inner]
        words = [f" goal {self._places[cell]}" for cell in sorted(self.goals)]
        words += [f" wall {self._places[cell]}" for cell in walls if cell not in self.floor]
        return "".join(words)


def transition(room: Room, state: State, move: str) -> State:
    r"""Return the state after one move, the same object if the move is blocked.

    Args:
        room: The room.
        state: The state before the move.
        move: One of ``MOVES``.

    >>> room, state = parse_board("#####\n#PXO#\n#####\n#####\n#####")
    >>> print(grid_text(room, transition(room, state, "right")).splitlines()[1])
    #_P√#
    """
    delta = room.deltas[move]
    player, boxes = state
    target = player + delta
    if target not in room.floor:
        return state
    if target not in boxes:
        return State(target, boxes)
    beyond = target + delta
    if beyond not in room.floor or beyond in boxes:
        return state
    return State(target, (boxes - {target}) | {beyond})


def effective_moves(room: Room, state: State) -> tuple[str, ...]:
    """Return the moves that change the state, in the order of ``MOVES``."""
    floor = room.floor
    player, boxes = state
    moves = []
    for move, delta in room.deltas.items():
        target = player + delta
        if target in floor and (target not in boxes or ((target + delta) in floor and (target + delta) not in boxes)):
            moves.append(move)
    return tuple(moves)


def grid_text(room: Room, state: State) -> str:
    """Return the room as lines of symbols, see the module docstring."""
    symbols = room._cells.copy()
    size, goals = room.size, room.goals
    for box in state.boxes:
        symbols[box + box // size] = "√" if box in goals else "X"
    player = state.player
    symbols[player + player // size] = "S" if player in goals else "P"
    return "".join(symbols)


def coordinate_text(room: Room, state: State) -> str:
    r"""Return the room as one line of words and numbers: a word for what it is, then row and column.

    >>> coordinate_text(*parse_board("#####\n#PXO#\n###_#\n#___#\n#####"))
    'player 1 1 box 1 2 goal 1 3 wall 2 1 wall 2 2'
    """
    places = room._places
    boxes = "".join([f" box {places[box]}" for box in sorted(state.boxes)])
    return f"player {places[state.player]}{boxes}{room._fixed_places}"


def parse_board(text: str) -> tuple[Room, State]:
    """Return the room and state that ``grid_text`` wrote.

    Raises:
        ConfigError: The text is not a square room with one player, walls around it and as many goals as boxes.
    """
    rows = text.split("\n")
    size = len(rows)
    cells = "".join(rows)
    if any(len(row) != size for row in rows) or not set(cells) <= set(SYMBOLS):
        raise ConfigError(f"a room must be a square of the symbols {SYMBOLS}, got {text!r}.")
    floor, goals, boxes, players = (
        frozenset(cell for cell, symbol in enumerate(cells) if symbol in kind) for kind in ("_OX√PS", "O√S", "X√", "PS")
    )
    border = {cell for cell in range(size**2) if cell // size in (0, size - 1) or cell % size in (0, size - 1)}
    if len(players) != 1 or len(goals) != len(boxes) or floor & border:
        raise ConfigError(
            f"a room needs walls all around, one player and as many goals as boxes, "
            f"got {len(players)} players, {len(goals)} goals and {len(boxes)} boxes in {text!r}."
        )
    return Room(size, floor, goals), State(min(players), boxes)
