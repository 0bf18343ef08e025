"""Maze: walk to the goal, seeing the whole map or only the cells nearby.

The mazes come from :mod:`turngym.envs.textgames.maze.rules`. The episode ends at the goal. Rewards: ``step_reward``
(0) every turn and ``goal_reward`` (1) at the goal.
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
from turngym.envs.textgames.maze.rules import (
    MOVES,
    all_open,
    carve,
    distances,
    doors,
    first_move,
    frontier,
    most_loops,
    offsets,
    refill,
    rooms,
)
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError, ExpertLost
from turngym.options import OptionError, between
from turngym.types import JSONValue

TILE_SIDE = 16
SYMBOLS = "#_GP√?"
"""Wall, floor, goal, player, player at the goal, not seen yet."""


@lru_cache(maxsize=1)
def tiles() -> drawing.Picture:
    """Return one tile for each of ``SYMBOLS``, as ``drawing.paint`` takes them.

    >>> tiles().shape
    (6, 16, 16, 3)
    """
    found = []
    for symbol in SYMBOLS:
        colour = {"#": drawing.DARK, "?": drawing.BLACK}.get(symbol, drawing.LIGHT)
        tile = drawing.tile(TILE_SIDE, colour)
        if symbol in "G√":
            drawing.flag(tile, drawing.GREEN if symbol == "√" else drawing.RED)
        if symbol in "P√":
            drawing.person(tile, drawing.BLUE)
        found.append(tile)
    return drawing.stack(found)


_RULES = """You stand in a maze. Walk to the goal.
You can walk one cell up, down, left or right, but not through walls."""
_SYMBOLS = "# wall, _ floor, G goal, P you, √ you at the goal"
_VIEWS = {
    "map": f"The maze is drawn as lines of symbols: {_SYMBOLS}. Up is towards the first line.",
    "seen": f"""You see {{window}} around you, through walls too. What you have seen so far is drawn as lines of \
symbols: {_SYMBOLS}, ? not seen yet. Up is towards the first line.""",
    "near": f"""You see {{window}} around you, through walls too, drawn as lines of symbols: {_SYMBOLS}. You stand in \
the middle; up is towards the first line. Above it is your place in the maze of {{size}} x {{size}} cells: rows are \
counted downwards and columns to the right, both from 0.""",
}
_ANSWER = "Answer with one move: up, down, left or right."
_UNKNOWN = "Unknown action: answer with up, down, left or right."
_DRAWS = 1000


class Maze(PictureEnv):
    """Navigate a random maze whose goal is reachable within the turn limit.

    The episode terminates at the goal, which is the only success, and is truncated at ``max_turns``. A move against a
    wall is understood and changes nothing; the legal actions are the moves that are not blocked.

    With a partial view, the goal is hidden until it comes into view. The anchor is then the map of everything seen so
    far. Progress is half the share of the rooms seen; once the goal has been seen, it is one half plus half of its
    proximity, with unseen doors taken as open. The expert goes to the nearest cell next to an unseen one.

    >>> env = Maze(7)
    >>> maze, info = env.reset(seed=0)
    >>> len(maze.splitlines()), maze.count("P"), maze.count("G")
    (7, 1, 1)
    """

    class Options(PictureEnv.Options):
        size: Annotated[int, between(7, 41)] = 11
        """Cells along one side, outer walls included, odd."""
        loops: Annotated[float, between(0.0, 1.0)] = 0.0
        """Share of the remaining walls between rooms that are opened beyond a perfect maze."""
        view: Literal["map", "seen", "near"] = "map"
        """``"map"`` for the whole maze, ``"seen"`` for a map of what has been seen, ``"near"`` for what is near."""
        radius: Annotated[int, between(1, 10)] = 1
        """Cells seen in each direction, 1 to 10, unless the view is ``"map"``."""
        min_moves: int = 4
        """Fewest moves from the first cell to the goal, 1 to ``size``."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        goal_reward: Reward = 1.0
        """Reward for reaching the goal."""
        max_turns: MaxTurns = 60

        def check(self) -> None:
            if self.size % 2 == 0:
                raise OptionError("size", f"must be odd, got {self.size}: rooms and walls take turns.")
            self.require("min_moves", between(1, min(self.size, self.max_turns)))

    options: Options

    file_options = worded("view")

    def setup(self) -> None:
        options = self.options
        self.size, self.radius, self.min_moves = options.size, options.radius, options.min_moves
        self.num_loops = round(options.loops * most_loops(options.size))
        self._sees_all, self._is_near = options.view == "map", options.view == "near"
        window = f"a window of {2 * options.radius + 1} x {2 * options.radius + 1} cells"
        self.instructions = "\n".join((_RULES, _VIEWS[options.view].format(window=window, size=options.size), _ANSWER))
        self._deltas = offsets(options.size)
        self.set_frame(options.size * TILE_SIDE, options.size * TILE_SIDE)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        maze, start, goal = self.draw(self._generate, lambda drawn: self._text(*drawn))
        self._enter(maze, start, goal)
        self._stand(start)
        return self._observed

    def _generate(self, generator: np.random.Generator) -> tuple[str, int, int]:
        """Return a maze, a first cell and a goal, with an allowed distance between these."""
        every = rooms(self.size)
        for _ in range(_DRAWS):
            maze = carve(generator, self.size, self.num_loops)
            one, other = generator.integers(len(every), size=2).tolist()
            away = distances(maze, every[one], self.size)
            if self.min_moves <= away[every[other]] <= self.max_turns:
                self._drawn_distances = away
                return maze, every[other], every[one]
        raise ConfigError(
            f"{self.env_id} found no maze with {self.min_moves} to {self.max_turns} moves to the goal in {_DRAWS} "
            f"tries: pass a smaller min_moves or a larger max_turns."
        )

    @staticmethod
    def _text(maze: str, player: int, goal: int) -> str:
        symbols = list(maze)
        symbols[goal] = "G"
        symbols[player] = "√" if player == goal else "P"
        return "".join(symbols)

    def _enter(self, maze: str, start: int, goal: int) -> None:
        """Take over a maze of which nothing has been seen."""
        self._maze, self._start, self._goal = maze, start, goal
        self._with_goal = f"{maze[:goal]}G{maze[goal + 1 :]}"
        self._legal: dict[int, tuple[str, ...]] = {}
        if self._sees_all:
            self._away = self._drawn_distances
            return
        self._known = ["\n" if symbol == "\n" else "?" for symbol in maze]
        self._optimistic: dict[int, int] | None = None
        margin = "#" * self.radius
        rows = [f"{margin}{row}{margin}" for row in self._with_goal.split("\n")]
        beyond = ["#" * len(rows[0])] * self.radius
        self._padded = [*beyond, *rows, *beyond]

    def _stand(self, cell: int) -> None:
        """Put the player into a cell and look around."""
        self._player = cell
        shown = "√" if cell == self._goal else "P"
        if self._sees_all:
            text = self._with_goal
            self._board = self._observed = f"{text[:cell]}{shown}{text[cell + 1 :]}"
            return
        self._look(cell)
        known = self._known
        floor, known[cell] = known[cell], shown
        self._board = "".join(known)
        known[cell] = floor
        self._observed = self._window(cell, shown) if self._is_near else self._board

    def _look(self, cell: int) -> None:
        """Note what can be seen from a cell."""
        width, radius = self.size + 1, self.radius
        row, column = divmod(cell, width)
        left, right = max(0, column - radius), min(self.size, column + radius + 1)
        known, text = self._known, self._with_goal
        for line in range(max(0, row - radius), min(self.size, row + radius + 1)):
            begin, end = line * width + left, line * width + right
            if "?" in known[begin:end]:
                known[begin:end] = text[begin:end]
                self._optimistic = None

    def _window(self, cell: int, shown: str) -> str:
        row, column = divmod(cell, self.size + 1)
        side = 2 * self.radius + 1
        lines = [line[column : column + side] for line in self._padded[row : row + side]]
        middle = lines[self.radius]
        lines[self.radius] = f"{middle[: self.radius]}{shown}{middle[self.radius + 1 :]}"
        return f"You are at row {row}, column {column}.\n" + "\n".join(lines)

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        if move not in MOVES:
            return Outcome(f"{_UNKNOWN}\n{self._observed}", self.options.step_reward, action_is_valid=False)
        target = self._player + self._deltas[move]
        if self._maze[target] == "#":
            return Outcome(self._observed, self.options.step_reward)
        self._stand(target)
        if target == self._goal:
            return Outcome(
                self._observed, self.options.step_reward + self.options.goal_reward, terminated=True, success=True
            )
        return Outcome(self._observed, self.options.step_reward)

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        cell = self._player
        if cell not in self._legal:
            self._legal[cell] = tuple([move for move, delta in self._deltas.items() if self._maze[cell + delta] == "_"])
        return self._legal[cell]

    def progress(self) -> float:
        if self._sees_all:
            return max(0.0, 1 - self._away[self._player] / self._away[self._start])
        every, known = rooms(self.size), self._known
        if known[self._goal] != "G":
            return 0.5 * sum([known[room] != "?" for room in every]) / len(every)
        if self._optimistic is None:
            mixed = [free if seen == "?" else seen for seen, free in zip(known, all_open(self.size), strict=True)]
            self._optimistic = distances(mixed, self._goal, self.size)
        return 1 - 0.5 * self._optimistic[self._player] / (2 * len(every))

    def render_text(self) -> str:
        return self._board

    def render_image(self) -> NDArray[np.uint8]:
        return drawing.paint(tiles(), drawing.symbol_cells(self._board, SYMBOLS), self.size)

    def save_state(self) -> JSONValue:
        first = self._text(self._maze, self._start, self._goal)
        return {"maze": first, "player": self._player, "known": None if self._sees_all else "".join(self._known)}

    def load_state(self, state: JSONValue) -> None:
        text = state["maze"]
        start, goal = text.index("P"), text.index("G")
        maze = text.replace("P", "_").replace("G", "_")
        player = state["player"]
        if len(maze) != self.size * (self.size + 1) - 1 or player < 0 or maze[player] != "_":
            raise ValueError(f"player {player!r} in the maze {text!r}")
        self._drawn_distances = distances(maze, goal, self.size)
        self._enter(maze, start, goal)
        if not self._sees_all:
            self._known = list(state["known"])
            if len(self._known) != len(maze):
                raise ValueError(f"{len(self._known)} known cells")
        self._stand(player)

    def resample_hidden(self) -> bool:
        """Replace what has not been seen by another maze, the goal included if it has not been seen."""
        if self._sees_all or not self._running or "?" not in self._known:
            return False
        before = self._maze, self._goal
        num_doors = sum(self._maze[door] == "_" for door in doors(self.size))
        known, maze = self._known, refill(self.np_random, self._known, self.size, num_doors)
        if known[self._goal] == "?":
            unseen = [room for room in rooms(self.size) if known[room] == "?"]
            goal = unseen[int(self.np_random.integers(len(unseen)))]
        else:
            goal = self._goal
        self._enter(maze, self._start, goal)
        self._known = known
        self.instance = self._text(maze, self._start, goal)
        self._stand(self._player)
        return (maze, goal) != before

    def expert_action(self) -> str:
        """Return the first move of a shortest way to the goal, or of one to the nearest place of discovery.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: No way leads to the goal.
        """
        require_running(self)
        if self._sees_all:
            nearer = self._away[self._player] - 1
            return next(move for move, delta in self._deltas.items() if self._away.get(self._player + delta) == nearer)
        goals = [self._goal] if self._known[self._goal] == "G" else []
        move = first_move(self._known, self._player, goals, self.size)
        move = move or first_move(self._known, self._player, frontier(self._known, self.size), self.size)
        if move is None:
            raise ExpertLost(f"{self.env_id} has no expert action: everything is seen and no way leads to the goal.")
        return move
