"""Base class of the household environments."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.household.goals import is_reached, known_marks, progress
from turngym.envs.household.planner import explore, next_command
from turngym.envs.household.rules import NOTHING_HAPPENS, House
from turngym.envs.household.world import KINDS, LOOK, NOWHERE
from turngym.envs.validation import require_running
from turngym.errors import ExpertLost
from turngym.options import one_of
from turngym.types import JSONValue

MIXED = "mixed"
_FIXED = frozenset({"sliceable", "toggleable"})
_RULES = """You are in a household and have a task. Write one command a turn, with names as they are shown:
go to drawer 2 | open drawer 2 | close drawer 2 | take mug 1 from drawer 2 | move mug 1 to desk 1 | \
clean mug 1 with {sink} 1 | heat mug 1 with microwave 1 | cool mug 1 with fridge 1 | use lamp 1 | examine drawer 2 | \
look | inventory | help
You can hold one thing at a time, and reach only what is where you stand. You have {turns} turns."""


class HomeEnv(TextEnv[str]):
    """A household with a task, which subclasses provide.

    The episode terminates with success and a reward of 1 as soon as the goal is reached; the reward of every other turn
    is 0. The score is the success, the progress the share of the goal's conditions that the agent knows to hold.
    """

    class Options(TextEnv.Options):
        kind: Annotated[str, one_of(MIXED, *KINDS)] = MIXED
        """Kind of task, such as ``"pick_heat_then_place_in_recep"``, or ``"mixed"``."""
        expert: Literal["explorer", "planner"] = "explorer"
        """Actions of ``expert_action``: the ``"explorer"`` uses only what the agent can know, and looks for things;
        the ``"planner"`` knows where everything is."""
        max_turns: MaxTurns = 50
        """Turns after which an unfinished episode is truncated; ALFWorld's papers allow 50."""

        @property
        def kinds(self) -> tuple[str, ...]:
            """The kinds of task that ``kind`` names: all six, or one."""
            return KINDS if self.kind == MIXED else (self.kind,)

    options: Options

    _house: House
    _sink = "sink"

    def setup(self) -> None:
        self._expert = self.options.expert
        self.instructions = _RULES.format(turns=self.max_turns, sink=self._sink)

    @property
    def house(self) -> House:
        """The household, hidden things included; not for agents."""
        return self._house

    def _enter(self, house: House) -> None:
        """Start to play in a household."""
        self._house = house
        self._known_to_be = progress(house)
        self._commands = house.commands()

    def apply_action(self, action: str) -> Outcome[str]:
        house = self._house
        text = house.act(action)
        if text is None:
            return Outcome(NOTHING_HAPPENS, action_is_valid=False)
        self._commands = house.commands()
        if all(is_reached(house, goal) for goal in house.world.goals):
            self._known_to_be = 1.0
            return Outcome(text, 1.0, True, True)
        self._known_to_be = progress(house)
        return Outcome(text)

    def legal_actions(self) -> tuple[str, ...]:
        return self._commands

    def progress(self) -> float:
        return self._known_to_be

    def anchor(self) -> str:
        """Return the task, where the agent is, what it holds, and what it has seen or done so far."""
        house, world = self._house, self._house.world
        names = [each.name for each in world.things]
        lines = [world.task, f"at {', '.join(world.receptacles[number].name for number in house.here())}"]
        if house.held != NOWHERE:
            lines.append(f"holding {names[house.held]}")
        for number in sorted(house.seen):
            state = " (closed)" if not house.is_accessible(number) else ""
            listed = ", ".join([names[thing] for thing in house.contents[number]])
            lines.append(f"{world.receptacles[number].name}{state}: {listed}")
        touched = house.examined.union(*house.marks.values())
        for thing in sorted(touched):
            inside = [names[inner] for inner in world.things[thing].inside] if thing in house.examined else []
            if marks := [*known_marks(house, thing), *inside]:
                lines.append(f"{names[thing]}: {', '.join(marks)}")
        return "\n".join(lines)

    def expert_action(self) -> str:
        """Return the next command of the explorer or the planner, whichever the option ``expert`` names.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: Nothing leads to the goal any more.
        """
        require_running(self)
        command = explore(self._house) if self._expert == "explorer" else self._plan()
        if command is None:
            raise ExpertLost(f"{self.env_id} has no expert action here: nothing leads to the goal of {self.instance}.")
        return command

    def _plan(self) -> str | None:
        return next_command(self._house, range(len(self._house.world.receptacles)))

    def resample_hidden(self) -> bool:
        """Move objects between receptacles that the agent has not looked into.

        Objects that could be used or sliced stay: the rules list such commands even behind closed doors.
        """
        house, world = self._house, self._house.world
        unseen = [number for number in range(len(world.receptacles)) if number not in house.seen]
        targets = {(goal.target, goal.thing) for goal in world.goals if goal.kind != LOOK}
        is_changed = False
        for old in unseen:
            for thing in list(house.contents[old]):
                kind, abilities = world.things[thing].type, world.things[thing].abilities
                places = [
                    number
                    for number in unseen
                    if (world.receptacles[number].type, kind) in world.fits - targets
                    and thing not in house.contents[number]
                ]
                if "pickupable" not in abilities or _FIXED & abilities or not places:
                    continue
                new = places[int(self.np_random.integers(len(places)))]
                house.relocate(thing, old, new)
                is_changed = True
        return is_changed

    @abstractmethod
    def _house_of(self, game: JSONValue) -> House:
        """Return the household of a game at its start, from what ``_game`` returned."""

    @abstractmethod
    def _game(self) -> JSONValue:
        """Return what identifies the game, as a JSON value."""

    def save_state(self) -> JSONValue:
        return {"game": self._game(), "house": self._house.state()}

    def load_state(self, state: JSONValue) -> None:
        house = self._house_of(state["game"])
        house.load(state["house"])
        self._enter(house)
