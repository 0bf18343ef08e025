"""Household: fetch, clean, heat, cool and tidy objects in a generated household.

Source of the kinds of task and of the rules: ALFWorld (Shridhar et al. 2021, arXiv 2010.03768). The households and the
vocabulary are turngym's own.
"""

from __future__ import annotations

from typing import Annotated

from turngym.envs.core import MaxTurns
from turngym.envs.household.generator import Plan, build, draw_plan
from turngym.envs.household.home import HomeEnv
from turngym.envs.household.rules import House
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task
from turngym.options import OptionError, between
from turngym.types import JSONValue

_MOST_OF_A_KIND = 1000
_HELP = """You can write: look, inventory, help, go to R, open R, close R, examine R, take O from R, move O to R,
examine O, use O, clean O with R, heat O with R, cool O with R; R is a receptacle and O a thing, as in drawer 2."""
TURNS_A_SUBTASK = 12
"""Upper bound on the planner's turns per subtask."""


class Household(HomeEnv):
    """Do a task of one of ALFWorld's six kinds in a generated household.

    Objects are in receptacles, some of which must be opened; the agent sees what is at its own location. The expert
    explores, using only what the agent can know.

    >>> env = Household()
    >>> observation, info = env.reset(seed=0)
    >>> observation.splitlines()[-1]
    'Your task is to: put a hot cup in a microwave.'
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward
    1.0
    """

    class Options(HomeEnv.Options):
        rooms: Annotated[int, between(1, 4)] = 1
        """Number of rooms."""
        receptacles: Annotated[int, between(4, 30)] = 10
        """Approximate number of receptacles."""
        distractors: Annotated[int, between(0, 40)] = 10
        """Objects that no goal asks for."""
        subtasks: Annotated[int, between(1, 3)] = 1
        """Goals that must hold at the same time."""
        max_turns: MaxTurns = 50
        """Turns after which the episode is truncated, at least 12 per subtask."""

        def check(self) -> None:
            if self.max_turns < TURNS_A_SUBTASK * self.subtasks:
                raise OptionError(
                    "max_turns",
                    f"must be at least {TURNS_A_SUBTASK} for each of the {self.subtasks} subtasks, "
                    f"got {self.max_turns}.",
                )

    options: Options

    file_options = worded("kind", "expert")

    def setup(self) -> None:
        options = self.options
        super().setup()
        self._kinds = options.kinds
        self._sizes = {name: getattr(options, name) for name in ("rooms", "receptacles", "distractors", "subtasks")}

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._plan_drawn = self.draw(
            lambda generator: draw_plan(generator, self._kinds, **self._sizes), lambda plan: plan.text
        )
        self._enter(House(build(self._plan_drawn), _HELP))
        return f"{self._house.look()}\n\n{self._house.world.task}"

    def _game(self) -> JSONValue:
        return self._plan_drawn.as_json()

    def _house_of(self, game: JSONValue) -> House:
        plan = Plan.from_json(game)
        if not all(type(count) is int and 1 <= count <= _MOST_OF_A_KIND for _, count in plan.receptacles):
            raise ValueError(f"the receptacles {plan.receptacles!r}")
        house = House(build(plan), _HELP)
        self._plan_drawn = plan
        return house
