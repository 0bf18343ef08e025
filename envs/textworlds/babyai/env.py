"""BabyAI (Chevalier-Boisvert et al. 2019, arXiv 1810.08272) in words: missions in rooms that the agent sees in part.

Levels, missions, rules, rewards and the bot are those of the package minigrid; the texts are turngym's.
"""

from __future__ import annotations

import hashlib

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textworlds.babyai.levels import Bot, make_level, own_limit, parts_done
from turngym.envs.textworlds.babyai.view import FACING, Cell, Seen, describe, look, map_text, name_of, remember
from turngym.envs.textworlds.replay import require_same
from turngym.envs.validation import refuse_task, require_running
from turngym.types import JSONValue

ACTIONS = ("turn left", "turn right", "go forward", "pick up", "drop", "toggle")
"""In the order of the package's numbers."""
UNKNOWN_ACTION = f"That is no action. The actions are: {', '.join(ACTIONS)}."
NOTHING_HAPPENS = "Nothing happens."
_NUMBERS = {text: number for number, text in enumerate(ACTIONS)}
_RULES = """You are in a building of square cells and have a mission. You see at most 6 cells ahead and 3 to each \
side, not through walls or closed doors.

Answer with one action a turn:
- turn left, turn right: turn on the spot
- go forward: one step ahead, if nothing is in the way
- pick up: take what is right ahead; you can carry one thing
- drop: put what you carry on the free cell right ahead
- toggle: open or close the door right ahead, or open the box there; a locked door needs a key of its colour in hand

To go to a thing is to stand right before it, facing it. You have {turns} turns."""


class BabyAI(TextEnv[str]):
    """Carry out missions of BabyAI's levels.

    The view is the package's 7 by 7 cells. The reward for success is BabyAI's: 1, less 0.9 times the used share of the
    turn limit. The progress is the share of the mission's parts that have been carried out in their order. The anchor
    holds the mission, where the agent stands as seen from its start, and every thing where it was last seen.
    """

    class Options(TextEnv.Options):
        level: str = "GoToLocal"
        """A BabyAI level of minigrid, such as ``"GoToLocal"``, ``"PutNextLocal"`` or ``"BossLevel"``."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which the episode is truncated; None for the level's own limit, the highest where it differs
        from mission to mission."""

        @property
        def turn_limit(self) -> int:
            return self.max_turns or own_limit(self.level)

    options: Options

    file_options = worded("level")

    def setup(self) -> None:
        self._level = make_level(self.options.level)
        self._level.fixed_max_steps, self._level.max_steps = True, self.max_turns
        self._level_name = self.options.level
        self.instructions = _RULES.format(turns=self.max_turns)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._enter(self.draw(self._generate, self._name))
        return f"Your mission: {self._level.mission}.\n\n{self._text}"

    def _generate(self, generator: np.random.Generator) -> int:
        seed = int(generator.integers(2**31))
        self._level.reset(seed=seed)
        return seed

    def _name(self, _: int) -> str:
        """Return the canonical text of the mission that stands: what is asked, and a hash of what is where."""
        level = self._level
        cells = hashlib.sha256(np.ascontiguousarray(level.grid.encode()).tobytes()).hexdigest()
        at = tuple(map(int, level.agent_pos))
        return f"{self._level_name}: {level.mission}; at {at} facing {FACING[level.agent_dir]}; {cells}"

    def _enter(self, seed: int) -> None:
        """Take over a level that was just reset."""
        self._seed = seed
        self._start = self._at()
        self._actions: list[int] = []
        self._known: dict[Cell, str] = {}
        self._bot: Bot | None = None
        self._share = 0.0
        self._see()

    def _at(self) -> Cell:
        column, row = self._level.agent_pos
        return int(column), int(row)

    def _see(self) -> None:
        """Look, and note what is in view."""
        level, (column, row) = self._level, self._at()
        seen: list[Seen] = look(level)
        self._carried = name_of(level.carrying)
        self._place = column - self._start[0], row - self._start[1]
        remember(self._known, seen, self._place, level.agent_dir)
        self._text = describe(seen, level.agent_dir, self._carried)

    def _follow(self, action: int) -> tuple[float, bool]:
        """Take an action; return the reward and whether the mission ended."""
        _, reward, terminated, _, _ = self._level.step(action)
        self._actions.append(action)
        done, total = parts_done(self._level.instrs)
        self._share = 1.0 if reward > 0 else done / total
        self._see()
        return float(reward), bool(terminated)

    def apply_action(self, action: str) -> Outcome[str]:
        number = _NUMBERS.get(" ".join(action.split()).casefold())
        if number is None:
            return Outcome(UNKNOWN_ACTION, action_is_valid=False)
        before = self._text
        reward, terminated = self._follow(number)
        text = f"{NOTHING_HAPPENS}\n{self._text}" if self._text == before and number > 1 else self._text
        return Outcome(text, reward, terminated, reward > 0)

    def anchor(self) -> str:
        level = self._level
        lines = [
            level.mission,
            f"at {self._place} facing {FACING[level.agent_dir]}",
            f"carrying {self._carried or 'nothing'}",
        ]
        return "\n".join([*lines, f"parts done: {self._share:.2f}", map_text(self._known)])

    def legal_actions(self) -> tuple[str, ...]:
        return ACTIONS

    def progress(self) -> float:
        return self._share

    def expert_action(self) -> str:
        """Return the next action of BabyAI's bot, which sees what the agent sees.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: The bot knows no way on; so it ends in KeyInBox, in the PutNext levels that start with a thing
                in hand, and in some missions of the last levels.
        """
        require_running(self)
        if self._bot is None:
            self._bot = Bot(self._level_name, self._seed)
        return ACTIONS[self._bot.advice(self._actions)]

    def save_state(self) -> JSONValue:
        return {"seed": self._seed, "actions": list(self._actions), "last": self._text}

    def load_state(self, state: JSONValue) -> None:
        self._level.reset(seed=state["seed"])
        self._enter(state["seed"])
        for action in state["actions"]:
            self._follow(action)
        require_same(self, {"last": self._text}, state)
