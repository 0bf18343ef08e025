"""Frozen Lake: walk over the ice to the goal without falling into a hole.

The rules are in :mod:`turngym.envs.textgames.frozen_lake.rules`. The episode ends in a hole or at the goal. The start,
the goal and the holes are random; a path to the goal always exists.
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
from turngym.envs.textgames.frozen_lake.rules import (
    MOVES,
    SYMBOLS,
    coordinate_text,
    count_lakes,
    draw_lake,
    grid_text,
    neighbour,
    parse_lake,
    slippery_policy,
    slips,
)
from turngym.envs.validation import refuse_task, require_running
from turngym.options import between
from turngym.types import JSONValue

_RULES = """You stand on a frozen lake. Walk to the goal without falling into a hole.
You can walk one cell up, down, left or right. You cannot leave the lake."""
_SLIPPERY = """The ice is slippery: one time in three you go where you wanted, and one time in three each to the left \
or to the right of that direction."""
_GRID = """The lake is drawn as lines of symbols: _ ice, O hole, G goal, P you, X you in a hole, √ you at the goal. Up \
is towards the first line."""
_COORDINATES = """The lake is described by words, each followed by a row and a column: player (you), goal, hole. Rows \
are counted downwards and columns to the right, both from 0."""
_ANSWER = "Answer with one move: up, down, left or right."
_UNKNOWN = "Unknown action: answer with up, down, left or right."
_TILE_SIDE = 16


@lru_cache(maxsize=1)
def _tiles() -> drawing.Picture:
    """Return one tile for each symbol of a lake."""
    tiles = []
    for symbol in SYMBOLS:
        tile = drawing.tile(_TILE_SIDE, drawing.ICE, drawing.WHITE)
        if symbol in "OX":
            drawing.disc(tile, 0.5, 0.5, 0.42, drawing.BLACK)
        if symbol in "G√":
            drawing.flag(tile, drawing.GREEN if symbol == "√" else drawing.RED)
        if symbol in "PX√":
            drawing.person(tile, drawing.ORANGE if symbol == "X" else drawing.BLUE)
        tiles.append(tile)
    return drawing.stack(tiles)


class FrozenLake(PictureEnv):
    """Cross a random frozen lake whose goal is reachable within the turn limit.

    The episode terminates at the goal (success) or in a hole (no success) and is truncated at ``max_turns``. On firm
    ice the legal actions are the moves that stay on the lake; on slippery ice all four, because a move against the edge
    may still slip along it.

    >>> env = FrozenLake(view="coordinates")
    >>> lake, info = env.reset(seed=0)
    >>> lake.split()[0], lake.count("hole")
    ('player', 3)
    """

    class Options(PictureEnv.Options):
        size: Annotated[int, between(3, 10)] = 4
        """Cells along one side."""
        hole_share: Annotated[float, between(0.0, 0.5)] = 0.2
        """Share of holes among the cells other than start and goal."""
        slippery: bool = False
        """True if a move may slip to either side."""
        view: Literal["grid", "coordinates"] = "grid"
        """``"grid"`` for lines of symbols, ``"coordinates"`` for one line of words and numbers."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        goal_reward: Reward = 1.0
        """Reward for reaching the goal."""
        hole_reward: Reward = 0.0
        """Reward for falling into a hole."""
        max_turns: MaxTurns = 20

    options: Options

    file_options = worded("view")

    def setup(self) -> None:
        options = self.options
        self.size, self.slippery = options.size, options.slippery
        self.num_holes = round(options.hole_share * (options.size**2 - 2))
        self.finite_instances = count_lakes(options.size, self.num_holes, self.max_turns)
        self._is_grid = options.view == "grid"
        self._board_text = grid_text if self._is_grid else coordinate_text
        parts = (_RULES, _SLIPPERY if options.slippery else "", _GRID if self._is_grid else _COORDINATES, _ANSWER)
        self.instructions = "\n".join(part for part in parts if part)
        self.set_frame(options.size * _TILE_SIDE, options.size * _TILE_SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._lake = self.draw(
            lambda generator: draw_lake(generator, self.size, self.num_holes, self.max_turns),
            lambda lake: grid_text(lake, lake.start),
        )
        self._stand(self._lake.start)
        return self._board

    def _stand(self, cell: int) -> None:
        self._player = cell
        self._board = self._board_text(self._lake, cell)

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        if move not in MOVES:
            note = _UNKNOWN + ("\n" if self._is_grid else " ")
            return Outcome(note + self._board, self.options.step_reward, action_is_valid=False)
        if self.slippery:
            move = slips(move)[int(self.np_random.integers(3))]
        self._stand(neighbour(self.size, self._player, move))
        if self._player == self._lake.goal:
            return Outcome(
                self._board, self.options.step_reward + self.options.goal_reward, terminated=True, success=True
            )
        if self._player in self._lake.holes:
            return Outcome(self._board, self.options.step_reward + self.options.hole_reward, terminated=True)
        return Outcome(self._board, self.options.step_reward)

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        if self.slippery:
            return MOVES
        return tuple([move for move in MOVES if neighbour(self.size, self._player, move) != self._player])

    def progress(self) -> float:
        distances = self._lake.distances
        if self._player not in distances:
            return 0.0
        return max(0.0, 1 - distances[self._player] / distances[self._lake.start])

    def render_text(self) -> str:
        return grid_text(self._lake, self._player)

    def render_image(self) -> NDArray[np.uint8]:
        return drawing.paint(_tiles(), drawing.symbol_cells(self.render_text(), SYMBOLS), self.size)

    def save_state(self) -> JSONValue:
        return {"lake": grid_text(self._lake, self._lake.start), "player": self._player}

    def load_state(self, state: JSONValue) -> None:
        lake, player = parse_lake(state["lake"]), state["player"]
        if lake.size != self.size or type(player) is not int or not 0 <= player < lake.size**2:
            raise ValueError(f"player {player!r} on a lake of size {lake.size}")
        self._lake = lake
        self._stand(player)

    def expert_action(self) -> str:
        """Return the first move of a shortest way, on slippery ice the move of the best policy.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        if self.slippery:
            return slippery_policy(self._lake)[self._player]
        distances = self._lake.distances
        nearer = distances[self._player] - 1
        return next(move for move in MOVES if distances.get(neighbour(self.size, self._player, move)) == nearer)
