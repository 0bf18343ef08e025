"""2048: push the tiles of a board together until one of them reaches the target.

The rules and the reference player are in :mod:`turngym.envs.textgames.game_2048.rules`. The episode ends with the
target, or when no move changes the board. Rewards: ``step_reward`` (0) every turn, ``merge_reward`` (0) times the
values of the tiles made in a turn over the target, ``target_reward`` (1) for the target, ``stuck_reward`` (0) for a
board without a move.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.game_2048.rules import (
    MOVES,
    Board,
    best_move,
    board_text,
    push,
    random_bits,
    survey,
    with_new_tile,
)
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

_RULES = """The board has {size} x {size} cells and holds tiles with numbers, drawn as lines; . is an empty cell. Make \
a tile of {target}.
A move pushes all tiles up, down, left or right as far as they go. Two equal tiles that meet become one tile of their \
sum. After each move that changed the board a new tile appears on a random empty cell: a 2, or a 4 one time in ten. \
You lose when no move changes the board.
Answer with one move: up, down, left or right."""
_UNKNOWN = "Unknown action: answer with up, down, left or right."
_TILE_SIDE = 32
_COLOURS = (
    drawing.DARK,
    (238, 228, 218),
    (237, 218, 180),
    (242, 177, 121),
    (245, 149, 99),
    (246, 124, 95),
    (246, 94, 59),
    (237, 207, 114),
    (228, 192, 80),
    (180, 190, 60),
    (120, 180, 70),
    (60, 160, 110),
)


@lru_cache(maxsize=8)
def _tiles(count: int) -> drawing.Picture:
    """Return the empty cell and the tiles of the first powers of two."""
    tiles = []
    for exponent in range(count):
        colour = _COLOURS[min(exponent, len(_COLOURS) - 1)]
        tile = drawing.tile(_TILE_SIDE, colour, drawing.BLACK)
        if exponent:
            text = str(1 << exponent)
            drawing.write(tile, text, drawing.BLACK, scale=2 if len(text) < 3 else 1)
        tiles.append(tile)
    return drawing.stack(tiles)


class Game2048(PictureEnv):
    """Merge tiles up to a target value; one tile is added each turn.

    The episode terminates when a tile of ``target`` is made, which is the only success, or when no move changes the
    board, and is truncated at ``max_turns``. A move that changes nothing is understood and adds no new tile. The new
    tiles are fixed by a key sampled at reset: the same moves always give the same tiles. The score is the sum of the
    values of all tiles made by merging. Progress is the exponent of the largest tile over that of the target.

    Instances are not checked individually: the reference player, which does not know future tiles, reaches the targets
    of the registered ids in at least 95 of 100 episodes.

    >>> env = Game2048(size=3, target=32)
    >>> print(env.reset(seed=0)[0])
     2  .  .
     .  .  .
     .  2  .
    >>> print(env.step("right")[0])
     .  .  2
     .  .  2
     .  .  2
    """

    class Options(PictureEnv.Options):
        size: Annotated[int, between(3, 6)] = 4
        """Cells along one side."""
        target: int = 256
        """Value of the tile to make, a power of two from 16 to 65536 that the board has room for."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        merge_reward: Reward = 0.0
        """Reward for made tiles whose values add up to the target, in proportion."""
        target_reward: Reward = 1.0
        """Reward for making the target."""
        stuck_reward: Reward = 0.0
        """Reward when no move changes the board."""
        max_turns: MaxTurns = 250
        """Turns after which the episode is truncated, at least half of ``target``."""

        def check(self) -> None:
            self.require("target", between(16, min(65536, 1 << self.size * self.size - 1)))
            if self.target & (self.target - 1):
                raise OptionError("target", f"must be a power of two, got {self.target}.")
            if self.max_turns < (needed := self.target // 2):
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but a tile of {self.target} can take {needed} turns: "
                    f"pass max_turns={needed} or more, or a smaller target.",
                )

    options: Options

    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "alphabetically last", "winners' most frequent action"),
        "pushing in one direction as long as it moves anything packs the large tiles along one side, and random play "
        "scatters them.",
    )

    def setup(self) -> None:
        options = self.options
        self.size, self.target = options.size, options.target
        self.instructions = _RULES.format(size=options.size, target=options.target)
        self._goal = options.target.bit_length() - 1
        # every tile merged from twos to the target
        self.score_range = (0.0, float(options.size**2 * options.target * (self._goal - 1)))
        self._width = len(str(options.target))
        self.set_frame(options.size * _TILE_SIDE, options.size * _TILE_SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        key = self.draw(lambda generator: int(generator.integers(1 << 63)), lambda drawn: self._name([(0, drawn)]))
        self._keys = [(0, key)]
        self._num_tiles = self._points = 0
        board: Board = (0,) * self.size**2
        self._set(self._with_tile(self._with_tile(board)))
        return self._text

    def _name(self, keys: list[tuple[int, int]]) -> str:
        """Return the canonical text of an instance: its size and its keys, each with the first tile that it gives."""
        streams = ", ".join(f"{key} from {first}" for first, key in keys)
        return f"{self.size} x {self.size} tiles of {streams}"

    def _with_tile(self, board: Board) -> Board:
        index = self._num_tiles
        self._num_tiles += 1
        return with_new_tile(board, random_bits(self._keys[-1][1], index))

    def _set(self, board: Board) -> None:
        self._board = board
        self._text = board_text(board, self.size, self._width)
        self._seen = survey(board, self.size)
        self._advice: str | None = None

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        if move not in self._seen.legal:
            if move in MOVES:
                return Outcome(self._text, self.options.step_reward)
            return Outcome(f"{_UNKNOWN}\n{self._text}", self.options.step_reward, action_is_valid=False)
        board, gain = push(self._seen, move)
        self._points += gain
        reward = self.options.step_reward + self.options.merge_reward * gain / self.target
        if gain >= self.target and self._goal in board:
            self._set(board)
            return Outcome(self._text, reward + self.options.target_reward, terminated=True, success=True)
        self._set(self._with_tile(board))
        if not self._seen.legal:
            return Outcome(self._text, reward + self.options.stuck_reward, terminated=True)
        return Outcome(self._text, reward)

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return self._seen.legal

    def progress(self) -> float:
        return max(self._board) / self._goal

    def score(self) -> float:
        return float(self._points)

    def render_text(self) -> str:
        return self._text

    def render_image(self) -> NDArray[np.uint8]:
        return drawing.paint(_tiles(self._goal + 1), self._board, self.size)

    def save_state(self) -> JSONValue:
        keys = [list(pair) for pair in self._keys]
        return {"board": list(self._board), "keys": keys, "num_tiles": self._num_tiles, "points": self._points}

    def load_state(self, state: JSONValue) -> None:
        board, keys = tuple(state["board"]), [(int(first), int(key)) for first, key in state["keys"]]
        if len(board) != self.size**2 or not all(tile in range(self._goal + 1) for tile in board) or not keys:
            raise ValueError(f"the board {board!r} with the keys {keys!r}")
        self._keys, self._num_tiles, self._points = keys, int(state["num_tiles"]), int(state["points"])
        self._set(board)

    def resample_hidden(self) -> bool:
        """Let the tiles to come follow from another key."""
        if not self._running:
            return False
        self._keys.append((self._num_tiles, int(self.np_random.integers(1 << 63))))
        self.instance = self._name(self._keys)
        return True

    def expert_action(self) -> str:
        """Return the move of the reference player.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        self._advice = self._advice or best_move(self._board, self.size)
        assert self._advice is not None, "a running episode has a move"
        return self._advice
