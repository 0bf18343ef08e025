"""Crafter (Hafner 2021, arXiv 2109.06780) in words: survive, gather and build, with 22 achievements.

Worlds, rules and rewards are those of the package crafter; the texts and the scripted player are turngym's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textworlds.crafter import world
from turngym.envs.textworlds.crafter.player import REACHED, next_action
from turngym.envs.textworlds.crafter.view import describe
from turngym.envs.textworlds.replay import require_same
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

_ACHIEVEMENTS = 22
_RULES = """You are in a world of square cells, with grassland, lakes, mountains, caves and creatures. Survive, gather \
materials, make tools, and collect achievements, each of which counts once:
{achievements}
{goal}You see 4 cells to the left and right and 3 up and down: the nearest cell of each kind, and all creatures.
Answer with one action a turn:
move_left, move_right, move_up, move_down: turn there, and step if the cell is free
do: take, drink, eat or attack what you face
sleep: sleep until you are rested or hurt
place_...: place on the cell that you face; make_...: make, near what that needs
noop: wait
The actions are: {actions}. You have {turns} turns, and the episode ends if you die."""


class Crafter(TextEnv[str]):
    """Survive, gather and build in a world that the player sees in part.

    An episode is solved, and ends, with the achievement that makes ``goal``; it ends unsolved if the player dies. The
    package itself ends no episode by achievements: with the default, the end comes when nothing is left to achieve.
    The reward is the package's: 1 for the first time of an achievement, and a tenth of the change of health. The score
    is the share of the 22 achievements that were reached, by which BALROG (Paglieri et al. 2024, arXiv 2411.13543)
    measures progress; the progress is the share of ``goal``. Evaluations also report how often each achievement was
    reached, from which the score of Crafter's paper follows.

    A world follows from its seed, which decides its split, as in the package; creatures are in a fixed order where the
    package's order differs from run to run. The anchor is what the player sees, and the achievements so far. Snapshots
    are restored by replay. The text shows in the dark what it shows by day.

    The 17 actions, all legal in every turn, are ``noop``, ``move_left``, ``move_right``, ``move_up``, ``move_down``,
    ``do`` (take, drink, eat or attack what the player faces), ``sleep``, ``place_stone``, ``place_table``,
    ``place_furnace``, ``place_plant``, ``make_wood_pickaxe``, ``make_stone_pickaxe``, ``make_iron_pickaxe``,
    ``make_wood_sword``, ``make_stone_sword`` and ``make_iron_sword``. An observation has lines such as ``You see: grass
    1 up, tree 4 left.``, ``You face: grass.``, ``health 9, food 9, drink 9, energy 9.`` and ``You have: nothing.``

    The expert is a script that knows the whole map, for goals of at most 12: the default goal of 22 has no expert. With
    ``goal=12`` it solves 38 of 40 test worlds within 500 turns. Random play of 500 turns reaches a score of 0.11 [0.09,
    0.13] (20 worlds).
    """

    class Options(TextEnv.Options):
        goal: Annotated[int, between(1, _ACHIEVEMENTS)] = _ACHIEVEMENTS
        """Number of achievements that solve the task."""
        area: Annotated[int, between(16, 64)] = 64
        """Cells of a side of the world. Small worlds start sooner, and may lack materials."""
        max_turns: MaxTurns = 10_000

    options: Options

    file_options = worded()

    def setup(self) -> None:
        self._inner = world.opened(self.options.area)
        self._names: tuple[str, ...] = tuple(self._inner.action_names)
        goal, most = self.options.goal, _ACHIEVEMENTS
        self.instructions = _RULES.format(
            achievements=", ".join(world.package().constants.achievements),
            goal="" if goal == most else f"You are done when you have {goal} of them.\n",
            actions=", ".join(self._names),
            turns=self.max_turns,
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._enter(self.draw(self._seed_of, lambda seed: f"crafter {self.options.area} seed {seed}"))
        return self._text

    def _seed_of(self, generator: np.random.Generator) -> int:
        return int(generator.integers(2**31))

    def _enter(self, seed: int) -> None:
        world.enter(self._inner, seed)
        self._seed, self._actions = seed, list[int]()
        self._text = describe(self._inner)

    def _reached(self) -> list[str]:
        return sorted(self._inner._unlocked)

    def _follow(self, action: int) -> tuple[float, bool, list[str]]:
        """Take an action; return the reward, whether the player died, and the new achievements."""
        before = self._reached()
        _, reward, died, _ = self._inner.step(action)
        self._actions.append(action)
        self._text = describe(self._inner)
        return float(reward), bool(died), [each for each in self._reached() if each not in before]

    def apply_action(self, action: str) -> Outcome[str]:
        name = "_".join(action.casefold().replace("_", " ").split())
        if name not in self._names:
            return Outcome(
                f"That is no action. The actions are: {', '.join(self._names)}.\n{self._text}", action_is_valid=False
            )
        reward, died, new = self._follow(self._names.index(name))
        success = not died and len(self._reached()) >= self.options.goal
        news = [f"Achieved: {', '.join(new)}."] * bool(new) + ["You died."] * died
        return Outcome("\n".join([*news, self._text]), reward, died or success, success)

    def anchor(self) -> str:
        return f"{self._text}\nAchieved: {', '.join(self._reached()) or 'nothing'}."

    def legal_actions(self) -> tuple[str, ...]:
        return self._names

    def progress(self) -> float:
        return min(1.0, len(self._reached()) / self.options.goal)

    def score(self) -> float:
        return len(self._reached()) / _ACHIEVEMENTS

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return for each achievement whether it was reached."""
        counts = self._inner._player.achievements
        return {f"outcome/{name}": float(name in self._inner._unlocked) for name in counts}

    def expert_action(self) -> str:
        """Return the next action of a script that knows the whole map.

        Raises:
            ConfigError: The goal is more than it reaches, or no episode is under way.
        """
        require_running(self)
        if self.options.goal > REACHED:
            raise ConfigError(
                f"the script of {self.env_id} reaches {REACHED} achievements in most worlds, and the goal is "
                f"{self.options.goal}: pass goal={REACHED} or less for its actions."
            )
        return next_action(self._inner)

    def save_state(self) -> JSONValue:
        return {"seed": self._seed, "actions": list(self._actions), **self._reached_state()}

    def _reached_state(self) -> dict[str, str]:
        """Return what shows that the actions were replayed as they were played: each advances the generator."""
        _, words, *rest = self._inner._world.random.get_state()
        return {"last": self._text, "generator": hashlib.sha256(words.tobytes() + repr(rest).encode()).hexdigest()}

    def load_state(self, state: JSONValue) -> None:
        seed, actions = state["seed"], state["actions"]
        if self.instance != f"crafter {self.options.area} seed {seed}" or type(seed) is not int:
            raise ValueError(f"the seed {str(seed)[:50]!r}")
        if not isinstance(actions, list) or len(actions) > self.turn:
            raise ValueError("the actions")
        if not all(type(each) is int and 0 <= each < len(self._names) for each in actions):
            raise ValueError("an action")
        self._enter(seed)
        is_over = False
        for action in actions:
            if is_over:
                raise ValueError("an action after the end")
            _, died, _ = self._follow(action)
            is_over = died or len(self._reached()) >= self.options.goal
        require_same(self, self._reached_state(), state)
