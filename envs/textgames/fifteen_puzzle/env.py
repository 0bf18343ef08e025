"""Fifteen Puzzle: slide the tiles of a square board into order; with three tiles a side it is the eight puzzle.

The rules are in :mod:`turngym.envs.textgames.fifteen_puzzle.rules`, the solver in
:mod:`turngym.envs.textgames.fifteen_puzzle.solver`. The episode ends when the board is solved. Rewards: ``step_reward``
(0) every turn, ``nearer_reward`` (0) for every cell that the tiles move closer to their places, subtracted when they
move away, and ``solve_reward`` (1) for the solved board.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
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
    tile_distances,
    total_distance,
)
from turngym.envs.textgames.fifteen_puzzle.solver import solve
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

_RULES = """The board holds the tiles 1 to {last} and one gap, drawn as _. Put the tiles in order, row by row, with \
the gap in the last place of the last row.
A move slides one tile next to the gap into it. Name the direction in which the tile moves: up slides the tile below \
the gap up, left slides the tile on the right of the gap to the left.
Answer with one move: up, down, left or right."""
_UNKNOWN = "Unknown action: answer with up, down, left or right."
_TILE_SIDE = 32


@lru_cache(maxsize=8)
def _tiles(count: int) -> drawing.Picture:
    """Return the gap and the numbered tiles."""
    tiles = [drawing.tile(_TILE_SIDE, drawing.DARK)]
    for number in range(1, count):
        tile = drawing.tile(_TILE_SIDE, drawing.LIGHT, drawing.DARK)
        drawing.write(tile, str(number), drawing.BLACK, scale=2)
        tiles.append(tile)
    return drawing.stack(tiles)


class FifteenPuzzle(PictureEnv):
    """Slide tiles to sort a random board that is solvable within the turn limit.

    The episode terminates when the board is solved, which is the only success, and is truncated at ``max_turns``. A
    move for which no tile can slide is understood and changes nothing. Progress is the share of the tiles' initial
    total distance from their places that has been removed.

    The expert plays a shortest solution where that is quick to find, always with three tiles a side; otherwise it works
    row by row, with about 80 moves (at most 130 seen) for four a side and 180 for five.

    >>> env = FifteenPuzzle(size=3, scramble=2)
    >>> print(env.reset(seed=0)[0])
    1 2 3
    4 _ 5
    7 8 6
    >>> env.expert_action()
    'left'
    """

    class Options(PictureEnv.Options):
        size: Annotated[int, between(2, 5)] = 4
        """Tiles along one side."""
        scramble: int | None = 30
        """Number of random moves from the solved board, at most ``max_turns``; None for any board, each equally
        likely, which needs ``max_turns`` of at least 6, 31, 80 and 208 for the four sizes."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        nearer_reward: Reward = 0.0
        """Reward for each cell of distance won; its negative for each cell lost."""
        solve_reward: Reward = 1.0
        """Reward for solving the board."""
        max_turns: MaxTurns = 60

        def check(self) -> None:
            if self.scramble is not None:
                self.require("scramble", between(1, self.max_turns))
            elif self.max_turns < (needed := MOST_MOVES[self.size]):
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but some boards of size {self.size} need up to {needed} moves: "
                    f"pass max_turns={needed} or more, or a number for scramble.",
                )

    options: Options

    file_options = worded()

    def setup(self) -> None:
        options = self.options
        self.size, self.scramble = options.size, options.scramble
        self.finite_instances = count_boards(options.size, options.scramble)
        self.instructions = _RULES.format(last=options.size**2 - 1)
        self._slides = slides(options.size)
        self._moves = tuple([tuple([move for move in MOVES if move in legal]) for legal in self._slides])
        self._distances = tile_distances(options.size)
        self.set_frame(options.size * _TILE_SIDE, options.size * _TILE_SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        board = self.draw(self._generate, lambda drawn: board_text(drawn, self.size))
        self._first_distance = total_distance(board, self.size)
        self._enter(board)
        return self._text

    def _generate(self, generator: np.random.Generator) -> Board:
        if self.scramble is None:
            return draw_any(generator, self.size)
        return draw_scrambled(generator, self.size, self.scramble)

    def _enter(self, board: Board) -> None:
        self._board = list(board)
        self._gap = board.index(0)
        self._distance = total_distance(board, self.size)
        self._text = board_text(board, self.size)
        width = len(str(self.size**2 - 1))
        # Numbers at even places, what separates them at odd ones, so that a move swaps two entries.
        self._parts = [self._text[index : index + length] for index, length in self._cuts(width)]
        self._plan: dict[Board, str] = {}

    def _cuts(self, width: int) -> list[tuple[int, int]]:
        """Return start and length of each number and each separator of the text."""
        count = self.size**2
        return [(index * (width + 1) + odd * width, 1 if odd else width) for index in range(count) for odd in (0, 1)]

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        gap = self._gap
        origin = self._slides[gap].get(move)
        if origin is None:
            if move in MOVES:
                return Outcome(self._text, self.options.step_reward)
            return Outcome(f"{_UNKNOWN}\n{self._text}", self.options.step_reward, action_is_valid=False)
        board, parts = self._board, self._parts
        tile = board[origin]
        board[gap], board[origin] = tile, 0
        parts[2 * gap], parts[2 * origin] = parts[2 * origin], parts[2 * gap]
        self._text = "".join(parts)
        self._gap = origin
        away = self._distances[tile]
        nearer = away[origin] - away[gap]
        self._distance -= nearer
        reward = self.options.step_reward + self.options.nearer_reward * nearer
        if not self._distance:
            return Outcome(self._text, reward + self.options.solve_reward, terminated=True, success=True)
        return Outcome(self._text, reward)

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return self._moves[self._gap]

    def progress(self) -> float:
        return max(0.0, 1 - self._distance / self._first_distance)

    def render_text(self) -> str:
        return self._text

    def render_image(self) -> NDArray[np.uint8]:
        return drawing.paint(_tiles(self.size**2), self._board, self.size)

    def save_state(self) -> JSONValue:
        return {"board": self._board, "first_distance": self._first_distance}

    def load_state(self, state: JSONValue) -> None:
        board = tuple(state["board"])
        is_board = sorted(board) == list(range(self.size**2)) and is_solvable(board, self.size)
        if not is_board or state["first_distance"] < 1:
            raise ValueError(f"the board {board!r} that began at distance {state['first_distance']!r}")
        self._first_distance = state["first_distance"]
        self._enter(board)

    def expert_action(self) -> str:
        """Return the next move of the solver.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        board = tuple(self._board)
        if board not in self._plan:
            ahead = board
            for move in solve(board, self.size, is_near=self.scramble is not None):
                self._plan[ahead] = move
                ahead = slide(ahead, move, self.size)
        return self._plan[board]
