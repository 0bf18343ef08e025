"""Connect Four: stones fall into columns, four in a row win; the first seat plays X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.connect_four.rules import (
    Grid,
    Position,
    columns_of,
    dropped,
    from_columns,
    just_won,
    move_values,
    open_columns,
)
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

MARKS = "XO"
_LOOK_AHEAD = 6
_SOLVED_CELLS = 20


class ConnectFour(TwoSeats):
    """Connect Four: +1 for the winner, -1 for the loser, 0 for a full board.

    The anchor is the board, row by row from the top, with the seat's mark. Between perfect players the first seat wins
    on the usual board of 7 columns and 6 rows; 4 x 4, 5 x 4 and 4 x 5 are draws, and with 6 columns and 4 rows the
    second seat wins. An action is the number of a column; answers may show it alone or in brackets, ``3`` or ``[3]``.

    >>> game = ConnectFour(rows=3, columns=3, connect=2)
    >>> game.begin(np.random.default_rng(0), {"moves": [0, 1]})
    >>> game.commit({0: game.read(0, "{'move': 0} I mean [0]")})
    (1.0, -1.0)
    """

    class Options(TwoSeats.Options):
        rows: Annotated[int, between(2, 12)] = 6
        """Height."""
        columns: Annotated[int, between(2, 12)] = 7
        """Width."""
        connect: int = 4
        """Stones in a row that win, from 2 to the longer side."""

        def check(self) -> None:
            self.require("connect", between(2, max(self.rows, self.columns)))

    options: Options

    file_options = worded()

    name = "connect_four"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "alphabetically last", "winners' most frequent action"),
        "one column played again and again becomes four in a row, which a random opponent seldom blocks: "
        "opponents=attentive does.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "minimax": "turngym.envs.tablegames.connect_four:MinimaxPlayer",
        "attentive": "turngym.envs.tablegames.connect_four:AttentivePlayer",
    }

    def setup(self) -> None:
        """Prepare an empty board."""
        columns = self.options.columns
        self.grid = Grid(self.options.rows, columns, self.options.connect)
        self._meanings = {
            form: str(column)
            for column in range(columns)
            for form in (f"{column}", f"column {column}", f"col {column}", f"i play {column}", f"drop {column}")
        }
        self.moves: list[int] = []
        """The columns played, in order."""
        self._columns = [""] * columns
        self._position = Position()

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        rows, columns, connect = self.grid
        return (
            f"Connect Four on {columns} columns, numbered 0 to {columns - 1}, and {rows} rows. {self.seats[0]} has the "
            f"stones X and begins, {self.seats[1]} has O. A stone falls to the lowest empty cell of its column. "
            f"{connect} of your stones in a row, column or diagonal win; a full board is a draw.\n"
            "Answer with the number of a column in brackets: [N]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Clear the board; ``{"moves": [3, 3, 2]}`` plays these columns first."""
        self._restart(options, ("moves",))
        self._play([])
        moves = options.get("moves", ())
        for column in moves if isinstance(moves, list | tuple) else ("none",):
            is_open = isinstance(column, int) and column in open_columns(self.grid, self._position)
            if not is_open or just_won(self.grid, self._position):
                raise ConfigError(f"moves must be columns with room, of a game that goes on, got {moves!r}.")
            self._drop(column)
        if self._is_decided():
            raise ConfigError(f"moves must leave a game that goes on, got {moves!r}.")

    def _play(self, moves: Sequence[int]) -> None:
        """Set up the board after some moves."""
        self.moves, self._columns, self._position = [], [""] * self.grid.columns, Position()
        for column in moves:
            self._drop(column)

    def _drop(self, column: int) -> None:
        self._columns[column] += MARKS[len(self.moves) % 2]
        self._position = dropped(self.grid, self._position, column)
        self.moves.append(column)

    def _is_decided(self) -> bool:
        return len(self.moves) == self.grid.cells or just_won(self.grid, self._position)

    def _rows(self) -> list[str]:
        """Return the rows of the board from the top, a dot for an empty cell."""
        return [
            "".join(cells) for cells in zip(*[c.ljust(self.grid.rows, ".")[::-1] for c in self._columns], strict=True)
        ]

    def _drawn(self) -> str:
        numbers = " ".join(map(str, range(self.grid.columns)))
        return "\n".join([*(" ".join(row) for row in self._rows()), numbers])

    def asked(self) -> tuple[int, ...]:
        """Return the seat that drops the next stone."""
        return () if self._is_over else (len(self.moves) % 2,)

    def prompt(self, seat: int) -> str:
        """Return the board."""
        return f"{self._drawn()}\nYou are {MARKS[seat]}. Which column?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the numbers of the columns that have room."""
        return tuple([str(column) for column in open_columns(self.grid, self._position)])

    def read(self, seat: int, text: str) -> str:
        """Return the column that an answer names."""
        column = read_choice(text, self._meanings)
        if len(self._columns[int(column)]) == self.grid.rows:
            raise InvalidAction(f"Column {column} is full: choose one of {', '.join(self.legal_actions(seat))}.")
        return column

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Drop a stone."""
        ((seat, column),) = actions.items()
        self._drop(int(column))
        self.tell(self.everyone, f"{self.seats[seat]} drops {MARKS[seat]} into column {column}.")
        if not self._is_decided():
            return 0.0, 0.0
        self._is_over = True
        has_won = just_won(self.grid, self._position)
        self.tell(self.everyone, f"{self._drawn()}\n{self.seats[seat] + ' wins' if has_won else 'A draw'}.")
        if has_won:
            self._earn((1.0, -1.0) if seat == 0 else (-1.0, 1.0))
        return tuple(self._earned)

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return 1.0 if is_winner else -1.0

    def anchor(self, seat: int) -> str:
        """Return the board, what wins, and the seat's mark."""
        return f"{'/'.join(self._rows())}; {self.grid.connect} in a row; you are {MARKS[seat]}"

    def progress(self, seat: int) -> float:
        """Return the share of the cells that are filled, 1 at the end."""
        return 1.0 if self._is_over else len(self.moves) / self.grid.cells

    def score(self, seat: int) -> float:
        """Return 1 for a win, half for a draw, 0 for a loss and before the end."""
        return (1 + self._earned[seat]) / 2 if self._is_over else 0.0

    def metrics(self) -> dict[str, float]:
        """Return the number of stones, and whether the game is drawn."""
        return {"stones": float(len(self.moves)), "drawn": float(self._is_over and not any(self._earned))}

    def state(self) -> JSONValue:
        """Return the moves."""
        return {"moves": list(self.moves), "earned": list(self._earned), "is_over": self._is_over}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        self._play(state["moves"])
        self._is_over = state["is_over"]
        self._load_earned(state["earned"])


class SmallConnectFour(ConnectFour):
    """Connect Four on a board of at most 20 cells, which a perfect player can search exhaustively."""

    class Options(ConnectFour.Options):
        rows: Annotated[int, between(2, 12)] = 4
        """Height."""
        columns: Annotated[int, between(2, 12)] = 5
        """Width."""
        connect: int = 4
        """Stones in a row that win, from 2 to the longer side."""

        def check(self) -> None:
            super().check()
            if self.rows * self.columns > _SOLVED_CELLS:
                raise OptionError(
                    "rows",
                    f"times columns must be at most {_SOLVED_CELLS} cells, got {self.rows} rows and {self.columns} "
                    "columns: use ConnectFour.",
                )

    options: Options

    players: ClassVar[Mapping[str, str]] = {
        "perfect": "turngym.envs.tablegames.connect_four:PerfectPlayer",
        "minimax": "turngym.envs.tablegames.connect_four:MinimaxPlayer",
        "attentive": "turngym.envs.tablegames.connect_four:AttentivePlayer",
    }


def seen(anchor: str) -> tuple[Grid, Position]:
    """Return the size and the position that an anchor shows.

    >>> seen("./.; 2 in a row; you are X")
    (Grid(rows=2, columns=1, connect=2), Position(own=0, both=0))
    """
    board, connect, _ = anchor.split("; ")
    rows = board.count("/") + 1
    grid = Grid(rows, board.index("/"), int(connect.split(" ")[0]))
    return grid, from_columns(columns_of(board), grid)


class MinimaxPlayer(Player):
    """Looks a fixed number of moves ahead, and picks randomly among equally good columns.

    Args:
        depth: Moves that it looks ahead, at least 1; the same number takes the same answer on every machine.
    """

    name = "minimax"

    def __init__(self, depth: int = _LOOK_AHEAD) -> None:
        if not 1 <= depth <= 144:
            raise ConfigError(f"depth of minimax must be a whole number in [1, 144], got {depth!r}.")
        self.depth = depth

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a column of the largest value."""
        columns = sorted(move_values(*seen(view.anchor), self.depth))
        return str(columns[int(self._random() * len(columns))])


class AttentivePlayer(MinimaxPlayer):
    """Looks two moves ahead: it completes a line, else blocks one, else prefers the middle."""

    name = "attentive"

    def __init__(self) -> None:
        super().__init__(2)


class PerfectPlayer(MinimaxPlayer):
    """Looks ahead to the end of the game, on boards of at most 20 cells: it never gets less than theory gives it."""

    name = "perfect"

    def __init__(self) -> None:
        super().__init__(_SOLVED_CELLS)

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator.

        Raises:
            ConfigError: The board is larger.
        """
        cells = seen(view.anchor)[0].cells
        if cells > _SOLVED_CELLS:
            raise ConfigError(f"perfect plays Connect Four of up to {_SOLVED_CELLS} cells, got {cells}: use minimax.")
        super().begin(view, generator)
