"""Reads a household game from ALFWorld's planning language, and writes one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from turngym.envs.household.world import (
    ABILITY_OF,
    CLEAN,
    COOL,
    HEAT,
    LOOK,
    MARK_OF,
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


_CONSTANTS = ("sink", "sinkbasin", "microwave", "fridge"), ("knife", "butterknife")
_ASKS = {mark: name for name, mark in _MARKS.items()}


def write_problem(world: World) -> str:
    """Return a game as a problem in ALFWorld's domain, which TextWorld's planner can play.

    Names come out as they are, given that those of one type stand together with falling numbers.
    """
    place_types = sorted({each.type for each in world.receptacles} | {one for one, _ in world.fits} | {*_CONSTANTS[0]})
    thing_types = sorted({each.type for each in world.things} | {one for _, one in world.fits} | {*_CONSTANTS[1]})
    places = [_id(each.name, number) for number, each in enumerate(world.receptacles)]
    things = [_id(each.name, number) for number, each in enumerate(world.things)]
    locations = {each.location for each in world.receptacles} | {world.start} | {at for _, at in world.around}
    declared = ["agent1 - agent"]
    declared += [f"{each}type - rtype" for each in place_types] + [f"{each}type - otype" for each in thing_types]
    declared += [f"{each} - receptacle" for each in places] + [f"{each} - object" for each in things]
    declared += [f"loc_bar_{each} - location" for each in sorted(locations)]
    facts = [f"atlocation agent1 loc_bar_{world.start}"]
    for each, receptacle in zip(places, world.receptacles, strict=True):
        facts += [f"receptacletype {each} {receptacle.type}type"]
        facts += [f"receptacleatlocation {each} loc_bar_{receptacle.location}"]
        facts += [f"openable {each}"] if receptacle.is_openable else []
    for each, thing in zip(things, world.things, strict=True):
        facts += [f"objecttype {each} {thing.type}type", *(f"{ability} {each}" for ability in sorted(thing.abilities))]
        facts += [f"inreceptacleobject {things[inner]} {each}" for inner in thing.inside]
    facts += [f"inreceptacle {things[thing]} {places[receptacle]}" for thing, receptacle in world.inside]
    facts += [f"objectatlocation {things[thing]} loc_bar_{at}" for thing, at in world.around]
    facts += [f"cancontain {place}type {thing}type" for place, thing in sorted(world.fits)]
    facts += [f"{_ASKS[mark]} {things[thing]}" for mark, thing in sorted(world.marks)]
    lines = "\n".join(f"({fact})" for fact in facts)
    goals = "\n".join(_write_goal(goal) for goal in world.goals)
    head = "(define (problem household) (:domain alfred)\n(:objects\n"
    return f"{head}{chr(10).join(declared)})\n(:init\n{lines})\n(:goal (and {goals})))\n"


def _id(name: str, number: int) -> str:
    return f"{name.split()[0]}_bar_{number:04d}"


def _write_goal(goal: Goal) -> str:
    thing = f"(objecttype ?o {goal.thing}type)"
    target = f"(receptacletype ?r {goal.target}type)"
    if goal.kind == LOOK:
        return (
            f"(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objecttype ?ot {goal.target}type) "
            "(toggleable ?ot) (istoggled ?ot) (receptacleatlocation ?r ?l) (atlocation ?a ?l) (inreceptacle ?ot ?r)))"
            f"(exists (?o - object ?a - agent) (and {thing} (holds ?a ?o)))"
        )
    if goal.kind == TWO:
        other = thing.replace("?o ", "?o2 ")
        return (
            f"(exists (?r - receptacle) (exists (?o - object) (and {thing} {target} (inreceptacle ?o ?r) (exists "
            f"(?o2 - object) (and (not (= ?o ?o2)) {other} {target} (inreceptacle ?o2 ?r))))))"
        )
    mark = MARK_OF.get(goal.kind)
    asked = f"({ABILITY_OF[mark]} ?o) ({_ASKS[mark]} ?o)" if mark else ""
    return f"(exists (?r - receptacle) (exists (?o - object) (and {thing} {target} {asked} (inreceptacle ?o ?r))))"
