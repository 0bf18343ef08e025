"""Rules: solve levels of a game whose rules and goal must be found out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.rules.game import Rules, draw_rules
from turngym.envs.rules.layout import draw_level
from turngym.envs.rules.mechanics import EXIT, WALL, State, press
from turngym.envs.rules.solver import solve
from turngym.envs.rules.view import Look, View, changed
from turngym.envs.settings import worded
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, ToolSet, find_call, read_call
from turngym.envs.validation import NUMBERS, refuse_task, require_running, saved_number
from turngym.envs.website.draw import Dice
from turngym.options import between
from turngym.seeding import restart
from turngym.types import JSONValue

RESTART = "restart"
_PRESS = "press"
_LONGEST_PROBLEM = 300
_ALLOWANCE = 6
"""Actions in a level that do not lower its score, in addition to twice the fewest."""
_ABOUT = (
    "You are not given the rules and the goal of this game: find them out by acting. The board is a grid of symbols; "
    "one of them covers another, which is named below the board. What symbols mean, what buttons do, and what solves a "
    "level differ from game to game. All levels of a game have the same rules, and later ones have more in them. Solve "
    "all levels in {turns} turns, with few actions; {restart} begins a level again, and its actions still count."
)
_RULES = _ABOUT + "\nAnswer with the name of one button, or {restart}."
_SCHEMA = {"type": "object", "properties": {"button": {"type": "string"}}, "required": ["button"]}
TOOLS = {_PRESS: Tool(_PRESS, f"Press a button, or {RESTART}.", {**_SCHEMA, "additionalProperties": False}, str)}


class RulesGame(TextEnv[str]):
    """Solve the levels of a small grid game whose rules and goal are not given.

    Each instance is a game of its own rules: how the avatar moves (by a cell, until something stops it, or sideways
    under a gravity that a button turns), what solves a level (reaching an exit, taking items in any or in one order,
    lighting lamps, matching a pattern that is shown under the board, covering a plate with a block), and what stands in
    the way (keys and doors, gates that a lever, a button or every action opens and closes, portals, one-way cells,
    cells that fall in, dials that turn the meaning of the buttons, blocks to push, hazards that restart the level).
    Later levels have more of it. Symbols, names of buttons, and the side from which the board is seen are drawn too.

    An episode is solved if all levels are. A solved episode gives 1 with ``reward="sparse"``; with ``reward="dense"``
    each level gives its part, and so do items taken and lamps lit, which tells something about the goal; what is met at
    the start gives nothing. The score is the mean over the levels, where level ``k`` counts ``k`` times, of
    ``min(1, (2 * fewest + 6) / actions) ** 2``, with the fewest actions that solve the level; 0 for those not solved.
    The expert knows the rules and takes the fewest.

    >>> env = RulesGame(difficulty=1)
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward, info["score"]
    (1.0, 1.0)
    """

    class Options(TextEnv.Options):
        difficulty: Annotated[int, between(1, 3)] = 2
        """Difficulty: the number of levels, and of things that stand in the way."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the solved share of the levels and of their goals."""
        max_turns: MaxTurns = 160

    options: Options
    file_options = worded("reward")

    def setup(self) -> None:
        about = {"restart": RESTART, "turns": self.max_turns}
        self.instructions = _RULES.format(**about)
        self.native_tools = ToolSet(tuple(each.schema for each in TOOLS.values()), _ABOUT.format(**about))
        self._entered = -1, -1
        self._generator = np.random.default_rng(0)  # set to the start of a stream for every use

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        number, rules = self.draw(self._drawn, lambda found: f"{found[1].text} {found[0]}")
        self._open(number, rules)
        self._solved: list[tuple[int, int]] = []
        self._enter_level()
        return self.anchor()

    def _drawn(self, generator: np.random.Generator) -> tuple[int, Rules]:
        number = int(generator.integers(NUMBERS))
        return number, self._rules_of(number)

    def _rules_of(self, number: int) -> Rules:
        return draw_rules(self._dice("rules", number), self.options.difficulty)

    def _dice(self, what: str, *key: int) -> Dice:
        return Dice(restart(self._generator, "hidden rules", what, self.options.difficulty, *key))

    def _open(self, number: int, rules: Rules) -> None:
        self._number, self._rules = number, rules
        self._look = Look(rules, self._dice("look", number))
        self._legal = (*self._look.buttons, RESTART)

    def _enter_level(self) -> None:
        place = min(len(self._solved), self._rules.levels - 1)  # the last one stays when it is solved
        self._actions = 0
        if self._entered != (self._number, place):
            self._entered = self._number, place
            self._level, self._plan = draw_level(self._rules, place, self._dice("level", self._number, place))
        self._view = View(self._level, self._look)
        self._head = f"level {place + 1} of {self._rules.levels}, buttons: {', '.join(self._legal)}\n"
        self._foot = f"\n\n{self._view.pattern}" if self._view.pattern else ""
        self._place(self._level.start)
        restart(self._generator, "hidden rules")  # a state that does not depend on what was drawn last

    def _place(self, state: State) -> None:
        self._state = state
        self._board, self._covered = self._view.board(state)

    def anchor(self) -> str:
        return f"{self._head}{self._board}\ncovered: {self._covered}{self._foot}"

    def apply_action(self, action: str) -> Outcome[str]:
        name, problem = self._read(action)
        if problem:
            return Outcome(f"That is no action: {problem}.", action_is_valid=False)
        before, board = self._achieved(), self._board
        self._actions += 1
        level = self._level
        self._place(level.start if name == RESTART else press(level, self._state, self._look.buttons[name]))
        if level.is_solved(self._state):
            return self._level_solved(before)
        cells = changed(board, self._board, self._view.row)
        observation = f"{self.anchor()}\nchanged: {cells}" if cells else f"{self.anchor()}\nnothing changed"
        return Outcome(observation, self._gain(before))

    def _level_solved(self, before: float) -> Outcome[str]:
        self._solved.append(
            (max(self._actions, len(self._plan)), len(self._plan))
        )  # fewer only after a forged snapshot
        told = f"Level {len(self._solved)} is solved, in {self._actions} actions."
        if len(self._solved) == self._rules.levels:
            sparse = float(self.options.reward == "sparse")
            return Outcome(f"{told} That was the last one.", sparse or 1.0 - before, True, True)
        self._enter_level()
        return Outcome(f"{told}\n{self.anchor()}", self._gain(before))

    def _read(self, action: str) -> tuple[str, str]:
        """Return the name of a button, and why there is none."""
        name = action
        if action.startswith(CALL_MARK):
            tool, arguments, problem = read_call(find_call(action) or "", TOOLS)
            if tool is None:
                return "", harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM))
            name = str(arguments["button"])
        name = name.strip().lower()
        return (name, "") if name in self._legal else ("", f"write one of {', '.join(self._legal)}")

    def _achieved(self) -> float:
        """Return the share of all levels' goals that is met."""
        solved, levels = len(self._solved), self._rules.levels
        return (solved + self._level.share(self._state)) / levels if solved < levels else 1.0

    def _gain(self, before: float) -> float:
        return self._achieved() - before if self.options.reward == "dense" else 0.0

    def legal_actions(self) -> tuple[str, ...]:
        return self._legal

    def progress(self) -> float:
        return len(self._solved) / self._rules.levels

    def score(self) -> float:
        shares = [
            place * min(1.0, (2 * fewest + _ALLOWANCE) / actions) ** 2
            for place, (actions, fewest) in enumerate(self._solved, 1)
        ]
        levels = self._rules.levels
        return float_sum(shares) / (levels * (levels + 1) / 2)

    def turn_columns(self) -> Mapping[str, float | str]:
        fewest, actions = (sum(each[kind] for each in self._solved) for kind in (1, 0))
        return {"levels": float(len(self._solved)), "efficiency": fewest / actions if actions else 0.0}

    def expert_action(self) -> str:
        """Return the first button of a shortest solution, or restart where there is none.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        plan = self._plan if self._state in self._plan else solve(self._level, self._state) or {}
        button = plan.get(self._state)
        return next((name for name, does in self._look.buttons.items() if does == button), RESTART)

    def save_state(self) -> JSONValue:
        solved = [list(each) for each in self._solved]
        return {"number": self._number, "solved": solved, "actions": self._actions, "state": list(self._state)}

    def load_state(self, state: JSONValue) -> None:
        number, actions = saved_number(state["number"]), saved_number(state["actions"])
        solved, found = state["solved"], state["state"]
        rules = self._rules_of(number)
        if f"{rules.text} {number}" != self.instance:
            raise ValueError("the instance is another one")
        if not isinstance(solved, list) or len(solved) > rules.levels or not all(map(_is_count, solved)):
            raise ValueError(f"the solved levels {solved!r}")
        self._open(number, rules)
        self._solved = [(each[0], each[1]) for each in solved]
        self._enter_level()
        self._actions = actions
        self._place(self._checked(found))

    def _checked(self, state: JSONValue) -> State:
        """Return a state of the level from a snapshot.

        Raises:
            ValueError: It is none.
        """
        level = self._level
        cells = len(level.kinds)
        limits = (cells, 1 << cells, 1 << level.bits, 4)
        if not isinstance(state, list) or len(state) != len(limits) or not all(type(each) is int for each in state):
            raise ValueError(f"the state {state!r}")
        at, blocks, bits, turned = state
        filled = sum(1 << cell for cell in range(cells) if level.kinds[cell] > EXIT)
        is_inside = all(0 <= each < limit for each, limit in zip(state, limits, strict=True))
        is_like = is_inside and blocks.bit_count() == level.start[1].bit_count() and not blocks & filled
        if not is_like or level.kinds[at] == WALL:
            raise ValueError(f"the state {state!r}")
        return at, blocks, bits, turned


def _is_count(found: JSONValue) -> bool:
    """Return whether a value from a snapshot is the actions and the fewest actions of a solved level."""
    is_pair = isinstance(found, list) and len(found) == 2 and all(type(each) is int for each in found)
    return is_pair and 1 <= found[1] <= found[0] <= NUMBERS
