"""Reads a household game from ALFWorld's planning language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from turngym.envs.household.world import (
    CLEAN,
    COOL,
    HEAT,
    LOOK,
    PLACE,
    TWO,
    Goal,
    Receptacle,
    Thing,
    World,
)
from turngym.errors import ConfigError

_ABILITIES = ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable", "isreceptacleobject")
_MARKS = {"isclean": "clean", "ishot": "hot", "iscool": "cool", "issliced": "sliced", "istoggled": "on"}
_FACT = re.compile(r"\(\s*(\w+)\s+([^\s()]+)(?:\s+([^\s()]+))?\s*\)")
_GOAL_KIND = {"istoggled": LOOK, "isclean": CLEAN, "ishot": HEAT, "iscool": COOL, "=": TWO}
_ATOM = re.compile(r"\(\s*(=|\w+)\s+(\?\w+)(?:\s+([^\s()]+))?\s*\)")
_SHAPES = {
    PLACE: {"inreceptacle": 1, "objecttype": 1, "receptacletype": 1},
    LOOK: {
        "objecttype": 2,
        "toggleable": 1,
        "istoggled": 1,
        "receptacleatlocation": 1,
        "atlocation": 1,
        "inreceptacle": 1,
        "holds": 1,
    },
    CLEAN: {"cleanable": 1, "objecttype": 1, "receptacletype": 1, "isclean": 1, "inreceptacle": 1},
    HEAT: {"heatable": 1, "objecttype": 1, "receptacletype": 1, "ishot": 1, "inreceptacle": 1},
    COOL: {"coolable": 1, "objecttype": 1, "receptacletype": 1, "iscool": 1, "inreceptacle": 1},
    TWO: {"objecttype": 2, "receptacletype": 2, "inreceptacle": 2, "=": 1},
}
"""Kind of task -> how often each predicate occurs in its goal."""


def short(type_name: str) -> str:
    """Return a type as it is written in names.

    >>> short("SinkBasinType")
    'sinkbasin'
    """
    return type_name.lower().removesuffix("type")


def names_of(ids: Iterable[str]) -> dict[str, str]:
    """Return id -> name: those of one kind are numbered from the last in alphabetical order to the first.

    >>> names_of(["cup_bar_b", "cup_bar_a", "sink_bar_0_bar_sinkbasin"])
    {'cup_bar_a': 'cup 2', 'cup_bar_b': 'cup 1', 'sink_bar_0_bar_sinkbasin': 'sinkbasin 1'}
    """
    kinds = {}
    for each in sorted(ids):
        kind, bar, _ = each.partition("_bar_")
        kinds[each] = kind + ("basin" if "basin" in each else "") if bar else ""
    left = Counter(kinds.values())
    names = {}
    for each, kind in kinds.items():
        names[each] = f"{kind} {left[kind]}" if kind else f"{each} "
        left[kind] -= 1
    return names


def read_problem(text: str, task: str) -> World:
    """Return the game that a problem states.

    Args:
        text: The problem in ALFWorld's domain.
        task: Goal in words.

    Raises:
        ConfigError: The text is not such a problem.
    """
    lower = text.lower()
    start, end = lower.find("(:init"), lower.find("(:goal")
    if not 0 <= start < end:
        raise ConfigError("a household game needs a problem with the parts :init and :goal, and found none.")
    facts: dict[str, list[tuple[str, str]]] = {}
    for name, first, second in dict.fromkeys(_FACT.findall(lower, start, end)):
        facts.setdefault(name, []).append((first, second))
    try:
        return _world(facts, read_goal(lower[end:]), task)
    except (KeyError, IndexError, StopIteration) as error:
        raise ConfigError(f"the problem of a household game speaks of {error}, which it does not introduce.") from error


def read_goal(text: str) -> Goal:
    """Return the goal of a problem.

    Args:
        text: The part of the problem that starts with ``(:goal``, in lower case.

    Raises:
        ConfigError: It is none of the six goals.
    """
    atoms = _ATOM.findall(text)
    counts = Counter(name for name, _, _ in atoms)
    kind = next((kind for name, kind in _GOAL_KIND.items() if name in counts), PLACE)
    if counts != _SHAPES[kind]:
        raise ConfigError(f"the goal of a household game is none of the six that there are: {sorted(counts)}.")
    variables = {name: variable for name, variable, _ in atoms}
    things = [(variable, short(second)) for name, variable, second in atoms if name == "objecttype"]
    if kind == LOOK:
        lamp = next(each for variable, each in things if variable == variables["istoggled"])
        held = next(second for name, _, second in atoms if name == "holds")
        return Goal(kind, next(each for variable, each in things if variable == held), lamp)
    target = next(short(second) for name, _, second in atoms if name == "receptacletype")
    if len({each for _, each in things}) != 1:
        raise ConfigError(f"the goal of a household game asks for several kinds of things: {things}.")
    return Goal(kind, things[0][1], target)


def _world(facts: dict[str, list[tuple[str, str]]], goal: Goal, task: str) -> World:
    location_of = dict(facts.get("receptacleatlocation", ()))
    receptacle_ids, thing_ids = sorted(location_of), sorted(dict(facts.get("objecttype", ())))
    ids = {each for pairs in facts.values() for pair in pairs for each in pair if "_bar_" in each}
    names = names_of(ids)
    locations = {each: number for number, each in enumerate(sorted(each for each in ids if each.startswith("loc_")))}
    receptacle_number = {each: number for number, each in enumerate(receptacle_ids)}
    thing_number = {each: number for number, each in enumerate(thing_ids)}
    types = {each: short(type_name) for each, type_name in facts["receptacletype"]}
    openable = {each for each, _ in facts.get("openable", ())}
    able = {ability: {each for each, _ in facts.get(ability, ())} for ability in _ABILITIES}
    nested = facts.get("inreceptacleobject", ())
    thing_types = {each: short(type_name) for each, type_name in facts["objecttype"]}
    return World(
        receptacles=tuple(
            Receptacle(names[each], types[each], locations[location_of[each]], each in openable)
            for each in receptacle_ids
        ),
        things=tuple(
            Thing(
                names[each],
                thing_types[each],
                frozenset(ability for ability, members in able.items() if each in members),
                tuple(sorted(thing_number[inner] for inner, outer in nested if outer == each)),
            )
            for each in thing_ids
        ),
        fits=frozenset((short(place), short(thing)) for place, thing in facts.get("cancontain", ())),
        inside=tuple(sorted((thing_number[o], receptacle_number[r]) for o, r in facts.get("inreceptacle", ()))),
        around=tuple(
            sorted((thing_number[o], locations[at]) for o, at in facts.get("objectatlocation", ()) if at in locations)
        ),
        goals=(goal,),
        task=task,
        start=locations[facts["atlocation"][0][1]],
        marks=frozenset((mark, thing_number[each]) for name, mark in _MARKS.items() for each, _ in facts.get(name, ())),
    )
