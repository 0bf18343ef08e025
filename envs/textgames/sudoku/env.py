"""Sudoku: fill a grid so that every row, every column and every box holds every value once.

The rules and the puzzle generator are in :mod:`turngym.envs.textgames.sudoku.rules`. Every puzzle has a unique solution
and can be solved without guessing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.sudoku.rules import (
    BOXES,
    dig,
    free_values,
    grid_text,
    layout,
    next_logical,
    parse_grid,
    random_grid,
)
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

FEWEST_CLUES = {4: 5, 6: 13, 9: 32}
"""Size of the grid -> clues that a puzzle without guessing seldom needs more of."""
_CLUES = {4: 8, 6: 18, 9: 45}
_MOVE = re.compile(r"\s*([1-9])[\s,]+([1-9])[\s,]+([1-9])\s*", re.ASCII)
_ORDERS = 4
_SIDE = 20

_RULES = """Fill the grid so that every row, every column and every box of {height} x {width} cells holds each of the \
values 1 to {size} once. A dot is an empty cell. Rows are counted from the top and columns from the left, from 1.
A value may go into an empty cell if no other cell of its row, its column or its box holds it. {wrong}
Answer with row, column and value, for example: 1 2 3"""
_WRONG = {
    "keep": "You cannot take a value back: one that is not part of the solution ends in failure sooner or later.",
    "refuse": "There is one solution; a value that is not part of it is not put in.",
}


class Moves(NamedTuple):
    """The moves of one size, as texts.

    Args:
        all: Text -> cell and value.
        of_cell: Cell -> its texts, smallest value first.
        ruled_out: Cell and value -> texts and cells of the peers' moves with that value.
    """

    all: dict[str, tuple[int, int]]
    of_cell: tuple[tuple[str, ...], ...]
    ruled_out: dict[tuple[int, int], tuple[tuple[str, int], ...]]


@cache
def moves(size: int) -> Moves:
    """Return the moves of a grid of 4, 6 or 9 cells a side.

    >>> moves(4).all["2 1 3"]
    (4, 3)
    """
    cells, values = range(size * size), range(1, size + 1)
    of_cell = tuple([tuple([f"{c // size + 1} {c % size + 1} {v}" for v in values]) for c in cells])
    peers = layout(size).peers
    return Moves(
        {of_cell[c][v - 1]: (c, v) for c in cells for v in values},
        of_cell,
        {(c, v): tuple([(of_cell[peer][v - 1], peer) for peer in peers[c]]) for c in cells for v in values},
    )


class Sudoku(PictureEnv):
    r"""Fill a random puzzle with a unique solution that two simple rules find without guessing.

    The episode terminates when the grid is full (success), and, with ``wrong="keep"``, as soon as no value fits some
    empty cell (no success); it is truncated at ``max_turns``. Legal actions are the values that break no visible rule,
    even if they are not part of the solution. Nothing is hidden, because the clues determine the solution, so progress
    counts only correctly filled cells.

    >>> env = Sudoku(4)
    >>> print(env.reset(seed=0)[0])
    2 . 1 .
    1 . 3 2
    . 1 . 3
    . . 4 .
    >>> env.expert_action()
    '1 4 4'
    """

    class Options(PictureEnv.Options):
        size: Literal[4, 6, 9] = 9
        """Cells along one side."""
        clues: int | None = None
        """Filled cells of the puzzle; at least 5, 13, 32 by size. None for 8, 18, 45."""
        wrong: Literal["keep", "refuse"] = "keep"
        """Handling of a value that breaks no visible rule but is not part of the solution: ``"keep"`` enters it, and
        nothing can be undone; ``"refuse"`` answers that it is wrong."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        fill_reward: Reward = 0.0
        """Total reward for filling all cells correctly, in equal parts for each of them."""
        solve_reward: Reward = 1.0
        """Reward for the full grid."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which the episode is truncated, at least one for each empty cell; None for twice that."""

        @property
        def given(self) -> int:
            """Filled cells of the puzzle."""
            return _CLUES[self.size] if self.clues is None else self.clues

        @property
        def empty(self) -> int:
            """Cells to fill."""
            return self.size * self.size - self.given

        @property
        def turn_limit(self) -> int:
            return self.max_turns or 2 * self.empty

        def check(self) -> None:
            self.require("clues", between(FEWEST_CLUES[self.size], self.size * self.size - 1), self.given)
            if self.turn_limit < self.empty:
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but {self.given} clues leave {self.empty} empty cells: "
                    f"pass max_turns={self.empty} or more, or more clues.",
                )

    options: Options

    file_options = worded("wrong")
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("first legal", "last legal", "alphabetically first", "alphabetically last"),
        "placements are listed cell by cell, and filling cells in order leaves fewer dead ends than a random order.",
    )

    def setup(self) -> None:
        options = self.options
        self.size, self.clues, self.keeps_wrong = options.size, options.given, options.wrong == "keep"
        self._empty = options.empty
        self._cell_reward = options.fill_reward / options.empty
        self._moves = moves(options.size)
        self.set_frame(options.size * _SIDE, options.size * _SIDE)
        height, width = BOXES[options.size]
        self.instructions = _RULES.format(height=height, width=width, size=options.size, wrong=_WRONG[options.wrong])

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        puzzle, self._solution = self.draw(self._generate, lambda pair: grid_text(pair[0], self.size))
        self._stand(puzzle, list(puzzle))
        return self._text

    def _generate(self, generator: np.random.Generator) -> tuple[list[int], list[int]]:
        while True:
            solution = random_grid(generator, self.size)
            for _ in range(_ORDERS):
                puzzle = dig(solution, generator.permutation(self.size**2).tolist(), self.clues, self.size)
                if puzzle.count(0) == self._empty:
                    return puzzle, solution

    def _stand(self, puzzle: list[int], grid: list[int]) -> None:
        """Work out from a puzzle and the grid so far what is kept up to date from then on."""
        self._puzzle, self._grid = puzzle, grid
        self._text = grid_text(grid, self.size)
        self._symbols = [line.split() for line in self._text.split("\n")]
        self._lines = self._text.split("\n")
        fitting = {cell: values for cell, values in enumerate(free_values(grid, self.size)) if not grid[cell]}
        self._left = len(fitting)
        self._wrongs = sum(1 for value, right in zip(grid, self._solution, strict=True) if value not in (0, right))
        self._room = {cell: len(values) for cell, values in fitting.items()}
        self._legal = {
            self._moves.of_cell[cell][value - 1]: (cell, value) for cell, values in fitting.items() for value in values
        }

    def apply_action(self, action: str) -> Outcome[str]:
        move = self._legal.get(action)
        if move is None:
            move = self._legal.get(self._tidy(action))
        if move is None:
            return Outcome(f"{self._reason(action)}\n{self._text}", self.options.step_reward, action_is_valid=False)
        cell, value = move
        is_right = value == self._solution[cell]
        if not is_right and not self.keeps_wrong:
            row, column = divmod(cell, self.size)
            return Outcome(
                f"Wrong: row {row + 1}, column {column + 1} is not {value}.\n{self._text}", self.options.step_reward
            )
        dead = self._place(cell, value)
        if not self._left:
            return Outcome(
                self._text, self.options.step_reward + self._cell_reward + self.options.solve_reward, True, True
            )
        self._wrongs += not is_right
        reward = self.options.step_reward + self._cell_reward * is_right
        if dead is None:
            return Outcome(self._text, reward)
        row, column = divmod(dead, self.size)
        return Outcome(f"{self._text}\nNo value fits row {row + 1}, column {column + 1} any more.", reward, True)

    def _place(self, cell: int, value: int) -> int | None:
        """Fill a cell; return an empty cell that no value fits any more, None if there is none."""
        legal, room = self._legal, self._room
        for name in self._moves.of_cell[cell]:
            legal.pop(name, None)
        dead = None
        for name, peer in self._moves.ruled_out[cell, value]:
            if legal.pop(name, None) is not None:
                room[peer] -= 1
                if not room[peer]:
                    dead = peer
        self._grid[cell] = value
        self._left -= 1
        row, column = divmod(cell, self.size)
        self._symbols[row][column] = str(value)
        self._lines[row] = " ".join(self._symbols[row])
        self._text = "\n".join(self._lines)
        return dead

    def _tidy(self, action: str) -> str:
        match = _MOVE.fullmatch(action)
        return " ".join(match.groups()) if match else ""

    def _reason(self, action: str) -> str:
        """Say why an action is not legal."""
        move = self._moves.all.get(self._tidy(action))
        if move is None:
            return f"Unknown action: answer with row, column and value, each from 1 to {self.size}, for example 1 2 3."
        cell, value = move
        row, column = divmod(cell, self.size)
        if self._grid[cell]:
            return f"Illegal move: row {row + 1}, column {column + 1} is filled."
        units = zip(("row", "column", "box"), layout(self.size).units[cell], strict=True)
        names = [name for name, others in units if any(self._grid[other] == value for other in others)]
        return (
            f"Illegal move: the {' and the '.join(names)} of row {row + 1}, column {column + 1} already has a {value}."
        )

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return tuple(self._legal)

    def progress(self) -> float:
        return 1 - (self._left + self._wrongs) / self._empty

    def render_text(self) -> str:
        return self._text

    def render_image(self) -> NDArray[np.uint8]:
        cells = [10 * (not clue) + value for clue, value in zip(self._puzzle, self._grid, strict=True)]
        picture = drawing.paint(_tiles(), cells, self.size)
        height, width = BOXES[self.size]
        for line in range(height, self.size, height):
            picture[line * _SIDE - 1 : line * _SIDE + 1] = drawing.BLACK
        for line in range(width, self.size, width):
            picture[:, line * _SIDE - 1 : line * _SIDE + 1] = drawing.BLACK
        return picture

    def save_state(self) -> JSONValue:
        grids = {"puzzle": self._puzzle, "grid": self._grid, "solution": self._solution}
        return {name: grid_text(grid, self.size) for name, grid in grids.items()}

    def load_state(self, state: JSONValue) -> None:
        puzzle, grid, solution = (parse_grid(state[name]) for name in ("puzzle", "grid", "solution"))
        if any(len(some) != self.size**2 or max(some) > self.size for some in (puzzle, grid, solution)):
            raise ValueError(f"grids of {len(puzzle)}, {len(grid)} and {len(solution)} cells")
        self._solution = solution
        self._stand(puzzle, grid)

    def expert_action(self) -> str:
        """Return the next value that one of the two simple rules gives; any legal one once a wrong value is in.

        Raises:
            ConfigError: No episode is under way, or nothing is legal.
        """
        require_running(self)
        found = next_logical(self._grid, self.size)
        if found is not None and (name := self._moves.of_cell[found[0]][found[1] - 1]) in self._legal:
            return name
        if not self._legal:
            raise ConfigError(f"{self.env_id} has no expert action where nothing is legal: call reset() first.")
        return next(iter(self._legal))


@cache
def _tiles() -> drawing.Picture:
    """Return the values 0 (empty) to 9 as clues, then the same as filled in later."""
    tiles = []
    for ground, ink in ((drawing.LIGHT, drawing.BLACK), (drawing.WHITE, drawing.BLUE)):
        for value in range(10):
            tiles.append(drawing.tile(_SIDE, ground, drawing.GREY))
            drawing.write(tiles[-1], str(value) if value else " ", ink, 2)
    return drawing.stack(tiles)
