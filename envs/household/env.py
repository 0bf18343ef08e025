"""Household: fetch, clean, heat, cool and tidy objects in a generated household.

Source of the kinds of task and of the rules: ALFWorld (Shridhar et al. 2021, arXiv 2010.03768). The households and the
vocabulary are turngym's own.
"""

from __future__ import annotations

from turngym.envs.household.generator import Plan, build, draw_plan
from turngym.envs.household.home import MIXED, HomeEnv, kinds_of
from turngym.envs.household.rules import House
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_whole
from turngym.errors import ConfigError
from turngym.types import JSONValue

_MOST_OF_A_KIND = 1000
_HELP = """You can write: look, inventory, help, go to R, open R, close R, examine R, take O from R, move O to R,
examine O, use O, clean O with R, heat O with R, cool O with R; R is a receptacle and O a thing, as in drawer 2."""
TURNS_A_SUBTASK = 12
"""Upper bound on the planner's turns per subtask."""


class Household(HomeEnv):
    """A generated household with a task of one of ALFWorld's six kinds.

    Objects are in receptacles, some of which must be opened; the agent sees what is at its own location. The expert
    explores, using only what the agent can know.

    Args:
        kind: Kind of task, such as ``"pick_heat_then_place_in_recep"``, or ``"mixed"``.
        rooms: Number of rooms, 1 to 4.
        receptacles: Approximate number of receptacles, 4 to 30.
        distractors: Objects that no goal asks for, 0 to 40.
        subtasks: Goals that must hold at the same time, 1 to 3.
        expert: ``"explorer"``, or ``"planner"``, which knows hidden objects.
        max_turns: Turns after which the episode is truncated, at least 12 per subtask.
        split: Share of the households to sample from.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range.

    >>> env = Household()
    >>> observation, info = env.reset(seed=0)
    >>> observation.splitlines()[-1]
    'Your task is to: put a hot cup in a microwave.'
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward
    1.0
    """

    file_options = worded("kind", "expert")

    def __init__(
        self,
        kind: str = MIXED,
        rooms: int = 1,
        receptacles: int = 10,
        distractors: int = 10,
        subtasks: int = 1,
        expert: str = "explorer",
        *,
        max_turns: int = 50,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(expert=expert, max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self._kinds = kinds_of(self.env_id, kind)
        for name, value, low, high in (
            ("rooms", rooms, 1, 4),
            ("receptacles", receptacles, 4, 30),
            ("distractors", distractors, 0, 40),
            ("subtasks", subtasks, 1, 3),
        ):
            require_whole(self.env_id, name, value, low, high)
        if max_turns < TURNS_A_SUBTASK * subtasks:
            raise ConfigError(
                f"max_turns of {self.env_id} must be at least {TURNS_A_SUBTASK} for each of the {subtasks} subtasks, "
                f"got {max_turns}."
            )
        self._sizes = {"rooms": rooms, "receptacles": receptacles, "distractors": distractors, "subtasks": subtasks}

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
