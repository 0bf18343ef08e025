"""Minesweeper: open every cell that holds no mine.

The rules and the deductions are in :mod:`turngym.envs.textgames.minesweeper.rules`. A cell with no mine next to it is
open at the start, and from there the whole board can be opened by deduction, without guessing. The episode ends with
the last safe cell or with a mine. Rewards: ``step_reward`` (0) every turn, ``open_reward`` (0) times the share of the
safe cells that the turn opened, ``solve_reward`` (1) for the last safe cell, ``mine_reward`` (0) for a mine.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.instances import split_of
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.minesweeper.layouts import draw_mines, other_mines
from turngym.envs.textgames.minesweeper.rules import Grid, Knowledge, cells_of, opened, solvable
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

TILE_SIDE = 16
SYMBOLS = ".012345678F*"
"""Closed, the numbers, a flag, and the mine that was opened."""

_NUMBER_COLOURS = (
    drawing.BLUE,
    drawing.GREEN,
    drawing.RED,
    drawing.PURPLE,
    drawing.BROWN,
    drawing.CYAN,
    drawing.BLACK,
    drawing.GREY,
)


@lru_cache(maxsize=1)
def tiles() -> drawing.Picture:
    """Return one tile for each of ``SYMBOLS``, as ``drawing.paint`` takes them.

    >>> tiles().shape
    (12, 16, 16, 3)
    """
    found = []
    for symbol in SYMBOLS:
        is_closed = symbol in ".F"
        tile = drawing.tile(TILE_SIDE, drawing.GREY if is_closed else drawing.LIGHT, drawing.DARK)
        if symbol in "12345678":
            drawing.write(tile, symbol, _NUMBER_COLOURS[int(symbol) - 1])
        if symbol == "F":
            drawing.flag(tile, drawing.RED)
        if symbol == "*":
            drawing.box(tile, 0.1, 0.1, 0.9, 0.9, drawing.RED)
            drawing.disc(tile, 0.5, 0.5, 0.3, drawing.BLACK)
        found.append(tile)
    return drawing.stack(found)


_RULES = """{mines} mines are hidden under a board of {rows} rows and {columns} columns. Open every cell without a mine.
An open cell shows how many of its up to eight neighbours hold a mine; opening a 0 opens its neighbours too. Opening a \
mine loses. A flag is your own mark on a closed cell and keeps it from being opened.
The board is drawn with the numbers of the columns above it and of the rows on the left, both from 0: . closed, \
0 to 8 open, F flag, * the mine you opened.
Answer with `reveal ROW COLUMN` or `flag ROW COLUMN`; a second flag on a cell takes the first one back."""
_UNKNOWN = "Unknown action: answer with reveal ROW COLUMN or flag ROW COLUMN."
_ACTION = re.compile(r"\s*(reveal|flag)[\s(:]+([0-9]{1,3})[\s,]+([0-9]{1,3})\)?\s*", re.IGNORECASE)
_DRAWS = 10_000


class Minesweeper(PictureEnv):
    """Open all safe cells of a random board that is solvable by deduction.

    The episode terminates when the last safe cell is open, which is the only success, or when a mine is opened, and is
    truncated at ``max_turns``. Opening a cell that is open or flagged, or flagging an open cell, is not legal and
    changes nothing. Progress is the share of open cells among the safe cells that were closed at the start. The expert
    opens the first cell that it deduces to be safe, ignoring flags.

    >>> env = Minesweeper(5, 5, 3)
    >>> print(env.reset(seed=0)[0])
      0 1 2 3 4
    0 . . . . .
    1 . . 1 1 1
    2 . . 1 0 0
    3 2 2 1 0 0
    4 0 0 0 0 0
    >>> env.expert_action()
    'reveal 0 1'
    """

    class Options(PictureEnv.Options):
        rows: Annotated[int, between(5, 20)] = 8
        """Rows of the board."""
        columns: Annotated[int, between(5, 20)] = 8
        """Columns of the board."""
        mines: int = 10
        """Number of mines, 3 to a quarter of the cells."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        open_reward: Reward = 0.0
        """Reward for opening all safe cells, paid in equal shares for each cell."""
        solve_reward: Reward = 1.0
        """Reward for opening the last safe cell."""
        mine_reward: Reward = 0.0
        """Reward for opening a mine."""
        max_turns: MaxTurns = 60
        """Turns after which the episode is truncated, enough to open every safe cell one by one."""

        def check(self) -> None:
            self.require("mines", between(3, self.rows * self.columns // 4))
            needed = self.rows * self.columns - self.mines - 4  # the first cell opens at least three neighbours
            if self.max_turns < needed:
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but opening {self.rows} x {self.columns} cells with {self.mines} mines "
                    f"can take {needed} turns: pass max_turns={needed} or more.",
                )

    options: Options

    file_options = worded()

    def setup(self) -> None:
        options = self.options
        self.rows, self.columns, self.num_mines = options.rows, options.columns, options.mines
        self.instructions = _RULES.format(mines=options.mines, rows=options.rows, columns=options.columns)
        self._grid = Grid(options.rows, options.columns)
        self._num_safe = options.rows * options.columns - options.mines
        names = {
            cell: f"{index // options.columns} {index % options.columns}" for index, cell in enumerate(self._grid.cells)
        }
        self._reveals = {cell: f"reveal {name}" for cell, name in names.items()}
        self._flags = {cell: f"flag {name}" for cell, name in names.items()}
        self._actions = {text: (False, cell) for cell, text in self._reveals.items()}
        self._actions |= {text: (True, cell) for cell, text in self._flags.items()}
        self._every_action = (*self._reveals.values(), *self._flags.values())
        self._blank, self._places = self._frame_text()
        self.set_frame(options.rows * TILE_SIDE, options.columns * TILE_SIDE)

    def _frame_text(self) -> tuple[str, dict[int, int]]:
        """Return the text of a closed board, and where in it each cell stands."""
        margin, width = len(str(self.rows - 1)), len(str(self.columns - 1)) + 1
        lines = [" " * margin + "".join([f"{column:{width}}" for column in range(self.columns)])]
        lines += [f"{row:{margin}}" + f"{'.':>{width}}" * self.columns for row in range(self.rows)]
        text = "\n".join(lines)
        places = [place for place, symbol in enumerate(text) if symbol == "."]
        return text, dict(zip(self._grid.cells, places, strict=True))

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        start, mines, numbers = self._generate(self.np_random)
        self.instance = self._name(start, mines)
        self._enter(start, mines)
        self._first_count = len(numbers)
        self._show(numbers)
        return self._text

    def _name(self, start: int, mines: int) -> str:
        return f"{self.rows} x {self.columns} first {start} mines {mines:x}"

    def _generate(self, generator: np.random.Generator) -> tuple[int, int, dict[int, int]]:
        """Return a first cell, mines that deduction finds, and the numbers that the first cell opens."""
        grid = self._grid
        for _ in range(_DRAWS):
            start, mines = draw_mines(generator, grid, self.num_mines)
            if split_of(self._name(start, mines)) != self.split:
                continue  # not worth the deduction
            if solvable(grid, mines, start):
                numbers = opened(grid, start, mines, 0)
                if len(numbers) < self._num_safe:
                    return start, mines, numbers
        raise ConfigError(f"{self.env_id} found no board that deduction solves in {_DRAWS} tries: pass fewer mines.")

    def _enter(self, start: int, mines: int) -> None:
        """Take over a board of which nothing is open."""
        self._start, self._mines = start, mines
        self._numbers: dict[int, int] = {}
        self._is_open = self._flagged = 0
        self._hit = -1
        self._symbols = list(self._blank)
        self._legal = dict.fromkeys(self._every_action)

    def _show(self, numbers: dict[int, int]) -> None:
        """Open cells."""
        self._numbers.update(numbers)
        symbols, places, legal = self._symbols, self._places, self._legal
        reveals, flags, is_open = self._reveals, self._flags, self._is_open
        for cell, number in numbers.items():
            is_open |= 1 << cell
            symbols[places[cell]] = "012345678"[number]
            legal.pop(reveals[cell], None)  # under a flag it was not legal
            del legal[flags[cell]]
        self._is_open = is_open
        self._flagged &= ~is_open
        self._text = "".join(symbols)

    def _mark(self, cell: int, symbol: str) -> None:
        self._symbols[self._places[cell]] = symbol
        self._text = "".join(self._symbols)

    def _read(self, action: str) -> tuple[bool, int] | None:
        """Return whether it is a flag and for which cell; None if the text names no cell of the board."""
        found = self._actions.get(action)
        if found is None and (match := _ACTION.fullmatch(action)):
            kind, row, column = match[1].lower(), int(match[2]), int(match[3])
            found = self._actions.get(f"{kind} {row} {column}")
        return found

    def apply_action(self, action: str) -> Outcome[str]:
        found = self._read(action)
        if found is None:
            return self._refuse(_UNKNOWN)
        is_flag, cell = found
        if self._is_open >> cell & 1:
            return self._refuse("That cell is open already.")
        if is_flag:
            self._toggle(cell)
            return Outcome(self._text, self.options.step_reward)
        if self._flagged >> cell & 1:
            return self._refuse("That cell carries a flag: take it back first.")
        if self._mines >> cell & 1:
            self._hit = cell
            self._mark(cell, "*")
            return Outcome(self._text, self.options.step_reward + self.options.mine_reward, terminated=True)
        numbers = opened(self._grid, cell, self._mines, self._is_open)
        self._show(numbers)
        reward = self.options.step_reward + self.options.open_reward * len(numbers) / (
            self._num_safe - self._first_count
        )
        if len(self._numbers) == self._num_safe:
            return Outcome(self._text, reward + self.options.solve_reward, terminated=True, success=True)
        return Outcome(self._text, reward)

    def _refuse(self, reason: str) -> Outcome[str]:
        return Outcome(f"{reason}\n{self._text}", self.options.step_reward, action_is_valid=False)

    def _toggle(self, cell: int) -> None:
        """Put a flag onto a closed cell, or take it back."""
        self._flagged ^= 1 << cell
        if self._flagged >> cell & 1:
            del self._legal[self._reveals[cell]]
            self._mark(cell, "F")
            return
        self._legal = self._listed()
        self._mark(cell, ".")

    def _listed(self) -> dict[str, None]:
        """Return the legal actions, in their order."""
        closed = [cell for cell in self._grid.cells if not self._is_open >> cell & 1]
        reveals = [self._reveals[cell] for cell in closed if not self._flagged >> cell & 1]
        return dict.fromkeys([*reveals, *[self._flags[cell] for cell in closed]])

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return tuple(self._legal)

    def progress(self) -> float:
        first = self._first_count
        return (len(self._numbers) - first) / (self._num_safe - first)

    def render_text(self) -> str:
        return self._text

    def render_image(self) -> NDArray[np.uint8]:
        text = "".join([self._symbols[place] for place in self._places.values()])
        return drawing.paint(tiles(), drawing.symbol_cells(text, SYMBOLS), self.columns)

    def save_state(self) -> JSONValue:
        return {
            "start": self._start,
            "mines": f"{self._mines:x}",
            "open": sorted(self._numbers),
            "flags": list(cells_of(self._flagged)),
            "hit": self._hit,
        }

    def load_state(self, state: JSONValue) -> None:
        grid, start, mines = self._grid, state["start"], int(state["mines"], 16)
        self._first_count = len(opened(grid, start, mines, 0))
        is_allowed = not any(mines >> cell & 1 for cell in (start, *state["open"]))
        if mines.bit_count() != self.num_mines or mines & ~grid.board or self._first_count >= self._num_safe:
            is_allowed = False
        if not is_allowed:
            raise ValueError(f"the cell {start!r} and the mines {state['mines']!r}")
        self._enter(start, mines)
        self._show({cell: (grid.near[cell] & mines).bit_count() for cell in state["open"]})
        for cell in state["flags"]:
            self._toggle(cell)
        if state["hit"] >= 0:
            self._hit = state["hit"]
            self._mark(self._hit, "*")

    def resample_hidden(self) -> bool:
        """Hide the mines elsewhere, wherever the numbers seen allow it; the board may then want a guess."""
        if not self._running:
            return False
        mines = other_mines(self.np_random, self._grid, self._numbers, self.num_mines)
        if mines is None or mines == self._mines:
            return False
        self._mines = mines
        self.instance = self._name(self._start, mines)
        return True

    def expert_action(self) -> str:
        """Return the first cell that is safe by deduction, without its flag.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        knowledge = Knowledge(self._grid, self.num_mines, self._numbers)
        cell = next(cells_of(knowledge.safe), -1)
        if cell < 0:
            cell = knowledge.best_guess()
        return (self._flags if self._flagged >> cell & 1 else self._reveals)[cell]
