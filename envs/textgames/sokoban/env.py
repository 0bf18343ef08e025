"""Sokoban: push every box in a walled room onto a goal.

The rules are in :mod:`turngym.envs.textgames.sokoban.rules`, the random rooms in
:mod:`turngym.envs.textgames.sokoban.rooms`. Rewards follow the classical scheme: -0.1 a turn, 1 for a box pushed onto a
goal, -1 for one pushed off, 10 for the solved room.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.sokoban.rooms import RoomSource
from turngym.envs.textgames.sokoban.rules import (
    MOVES,
    SYMBOLS,
    Room,
    State,
    coordinate_text,
    effective_moves,
    grid_text,
    parse_board,
    transition,
)
from turngym.envs.textgames.sokoban.solver import solve
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ExpertLost
from turngym.options import between
from turngym.types import JSONValue

_RULES = """You are the player in a room with boxes. Push every box onto a goal.
You can walk one cell up, down, left or right. Walking into a box pushes it one cell further, if the cell behind it is \
free. You cannot pull a box, push two boxes at once or walk through walls."""
_GRID = """The room is drawn as lines of symbols: # wall, _ floor, O goal, X box, √ box on a goal, P you, S you on a \
goal. Up is towards the first line."""
_COORDINATES = """The room is described by words, each followed by a row and a column: player (you), box, goal, wall. \
Rows are counted downwards and columns to the right; the outermost rows and columns are walls that are not listed."""
_ANSWER = "Answer with one move: up, down, left or right."
_UNKNOWN = "Unknown action: answer with up, down, left or right."
_TILE_SIDE = 16


@lru_cache(maxsize=1)
def _tiles() -> drawing.Picture:
    """Return one tile for each symbol of a room."""
    tiles = []
    for symbol in SYMBOLS:
        tile = drawing.tile(_TILE_SIDE, drawing.DARK if symbol == "#" else drawing.LIGHT, drawing.GREY)
        if symbol in "O√S":
            drawing.disc(tile, 0.5, 0.5, 0.4, drawing.RED)
            drawing.disc(tile, 0.5, 0.5, 0.25, drawing.LIGHT)
        if symbol in "X√":
            drawing.box(tile, 0.15, 0.15, 0.85, 0.85, drawing.GREEN if symbol == "√" else drawing.BROWN)
            drawing.box(tile, 0.45, 0.15, 0.55, 0.85, drawing.BLACK)
        if symbol in "PS":
            drawing.person(tile, drawing.BLUE)
        tiles.append(tile)
    return drawing.stack(tiles)


class Sokoban(PictureEnv):
    """Push boxes onto goals in a random room that is solvable within the turn limit.

    The episode terminates when every box stands on a goal; that is the only success. Dead ends do not terminate it, so
    an unsolved room is truncated at ``max_turns``. A move against a wall or a blocked box is understood and changes
    nothing.

    >>> env = Sokoban(boxes=2)
    >>> room, info = env.reset(seed=0)
    >>> room.count("X") + room.count("√"), len(room.splitlines())
    (2, 6)
    """

    class Options(PictureEnv.Options):
        size: Annotated[int, between(5, 12)] = 6
        """Cells along one side, outer walls included."""
        boxes: int = 1
        """Number of boxes, 1 to 5."""
        min_moves: int = 1
        """Minimum length of a room's solution."""
        max_moves: int | None = None
        """Maximum length of that solution, at most ``max_turns``; None for half of ``max_turns``."""
        view: Literal["grid", "coordinates"] = "grid"
        """``"grid"`` for lines of symbols, ``"coordinates"`` for one line of words and numbers."""
        step_reward: Reward = -0.1
        """Reward of every turn."""
        box_reward: Reward = 1.0
        """Reward for pushing a box onto a goal; its negative for pushing one off."""
        solve_reward: Reward = 10.0
        """Reward for solving the room."""
        max_turns: MaxTurns = 30

        @property
        def longest(self) -> int:
            """Maximum length of a solution."""
            return max(1, self.max_turns // 2) if self.max_moves is None else self.max_moves

        def check(self) -> None:
            self.require("boxes", between(1, min(5, (self.size - 2) ** 2 // 3)))
            self.require("max_moves", between(1, self.max_turns), self.longest)
            self.require("min_moves", between(1, self.longest))

    options: Options

    file_options = worded("view")

    def setup(self) -> None:
        options = self.options
        self._is_grid = options.view == "grid"
        self._board_text = grid_text if self._is_grid else coordinate_text
        self.instructions = "\n".join((_RULES, _GRID if self._is_grid else _COORDINATES, _ANSWER))
        self._source = RoomSource(options.size, options.boxes, options.min_moves, options.longest)
        self._plan: dict[State, str] = {}
        self.set_frame(options.size * _TILE_SIDE, options.size * _TILE_SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._source.forget()
        room, state = self.draw(self._source.draw, lambda drawn: grid_text(*drawn))
        self._enter(room, state)
        return self._board

    def _enter(self, room: Room, state: State) -> None:
        self._room = room
        self._place = state
        self._board = self._board_text(room, state)
        self._plan = {}

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        if move not in MOVES:
            note = _UNKNOWN + ("\n" if self._is_grid else " ")
            return Outcome(note + self._board, self.options.step_reward, action_is_valid=False)
        before = self._place
        after = transition(self._room, before, move)
        if after is before:
            return Outcome(self._board, self.options.step_reward)
        self._place = after
        self._board = self._board_text(self._room, after)
        reward = self.options.step_reward
        if after.boxes is not before.boxes:
            goals = self._room.goals
            reward += self.options.box_reward * (len(after.boxes & goals) - len(before.boxes & goals))
            if after.boxes == goals:
                return Outcome(self._board, reward + self.options.solve_reward, terminated=True, success=True)
        return Outcome(self._board, reward)

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        return effective_moves(self._room, self._place)

    def progress(self) -> float:
        boxes = self._place.boxes
        return len(boxes & self._room.goals) / len(boxes)

    def render_text(self) -> str:
        return grid_text(self._room, self._place)

    def render_image(self) -> NDArray[np.uint8]:
        return drawing.paint(_tiles(), drawing.symbol_cells(self.render_text(), SYMBOLS), self._room.size)

    def save_state(self) -> JSONValue:
        return grid_text(self._room, self._place)

    def load_state(self, state: JSONValue) -> None:
        self._enter(*parse_board(state))

    def expert_action(self) -> str:
        """Return the next move of a shortest solution.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: The room can no longer be solved, for example because a box stands in a corner.
        """
        require_running(self)
        if self._place not in self._plan:
            path = solve(self._room, self._place)
            if not path:
                raise ExpertLost(
                    f"{self.env_id} has no expert action here: the room can no longer be solved from this state. "
                    f"Call reset(), or restore() an earlier state."
                )
            self._plan.update(path)
        return self._plan[self._place]
