"""The contents of a household game: receptacles, things, their locations, and the goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

PLACE = "pick_and_place_simple"
LOOK = "look_at_obj_in_light"
CLEAN = "pick_clean_then_place_in_recep"
HEAT = "pick_heat_then_place_in_recep"
COOL = "pick_cool_then_place_in_recep"
TWO = "pick_two_obj_and_place"
KINDS = (PLACE, LOOK, CLEAN, HEAT, COOL, TWO)
"""The six kinds of task, by the names that ALFWorld gives them."""

MARK_OF = {CLEAN: "clean", HEAT: "hot", COOL: "cool"}
"""Kind of task -> what the thing must have become."""
MARKS = ("clean", "hot", "cool", "sliced", "on")
"""Possible transformations of a thing."""
APPLIANCES = {"clean": ("sink", "sinkbasin"), "hot": ("microwave",), "cool": ("fridge",)}
"""Mark -> types of the receptacles that give it."""
ABILITY_OF = {"clean": "cleanable", "hot": "heatable", "cool": "coolable"}
"""Mark -> what a thing must be for it."""
KNIVES = ("knife", "butterknife")
NOWHERE = -1
"""Nothing is held."""


@dataclass(frozen=True, slots=True)
class Receptacle:
    """Something that holds things.

    Args:
        name: As written in commands, such as ``"drawer 2"``.
        type: Such as ``"drawer"``.
        location: Number of the location; several receptacles may share one.
        is_openable: Whether it must be opened first; such receptacles are closed at the start.
    """

    name: str
    type: str
    location: int
    is_openable: bool = False


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that may be taken, used or looked at.

    Args:
        name: As written in commands, such as ``"mug 1"``.
        type: Such as ``"mug"``.
        abilities: Some of ``pickupable``, ``cleanable``, ``heatable``, ``coolable``, ``sliceable``, ``toggleable`` and
            ``isreceptacleobject``.
        inside: Numbers of the things that are permanently in it.
    """

    name: str
    type: str
    abilities: frozenset[str] = frozenset({"pickupable"})
    inside: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal.

    Args:
        kind: One of :data:`KINDS`.
        thing: Type of the thing or things.
        target: Type of the receptacle; for :data:`LOOK` the type of the lamp.
    """

    kind: str
    thing: str
    target: str


@dataclass(frozen=True)
class World:
    """A game at its start. Things and receptacles are shown in the order given here.

    Args:
        receptacles: All of them.
        things: All of them.
        fits: Pairs (type of a receptacle, type of a thing) that go together.
        inside: Pairs (thing, receptacle), by number.
        around: Pairs (thing, location), by number.
        goals: Simultaneous requests.
        task: The same in words.
        start: Location at which the agent starts.
        marks: Pairs (mark, thing) that hold at the start.
    """

    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    fits: frozenset[tuple[str, str]]
    inside: tuple[tuple[int, int], ...]
    around: tuple[tuple[int, int], ...]
    goals: tuple[Goal, ...]
    task: str
    start: int = 0
    marks: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    @cached_property
    def at(self) -> dict[int, tuple[int, ...]]:
        """Location -> numbers of the receptacles there."""
        found: dict[int, tuple[int, ...]] = {}
        for number, receptacle in enumerate(self.receptacles):
            found[receptacle.location] = (*found.get(receptacle.location, ()), number)
        return found

    @cached_property
    def things_of(self) -> dict[str, tuple[int, ...]]:
        """Type -> numbers of the things."""
        return _by_type([thing.type for thing in self.things])

    @cached_property
    def receptacles_of(self) -> dict[str, tuple[int, ...]]:
        """Type -> numbers of the receptacles."""
        return _by_type([receptacle.type for receptacle in self.receptacles])

    @cached_property
    def ways(self) -> tuple[tuple[int, str, int], ...]:
        """Location, command and number for each receptacle that one can go to, in the order of the commands."""
        commands = [(f"go to {each.name}", number) for number, each in enumerate(self.receptacles)]
        return tuple((self.receptacles[number].location, command, number) for command, number in sorted(commands))

    def goal_things(self, goal: Goal) -> tuple[int, ...]:
        """Return the numbers of the things that a goal may mean."""
        needed = ABILITY_OF.get(MARK_OF.get(goal.kind, ""))
        return tuple(
            number
            for number in self.things_of.get(goal.thing, ())
            if needed is None or needed in self.things[number].abilities
        )


def _by_type(types: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, kind in enumerate(types):
        found.setdefault(kind, []).append(number)
    return {kind: tuple(numbers) for kind, numbers in found.items()}
