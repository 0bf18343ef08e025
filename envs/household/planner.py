"""A planner for households: the next command towards the goal, from any state.

It knows the rules of this one domain and so needs no search: a task is to fetch a thing, to treat it, and to bring it
somewhere. Its knowledge of the household is a set of receptacles: with all of them it is the planner that produced
ALFWorld's walkthroughs, with those that were seen it is a player that has to search.
"""

from __future__ import annotations

from collections.abc import Collection

from turngym.envs.household.goals import is_lit, is_reached
from turngym.envs.household.rules import House
from turngym.envs.household.world import APPLIANCES, LOOK, MARK_OF, NOWHERE, TWO, Goal


def next_command(house: House, known: Collection[int]) -> str | None:
    """Return the next command towards the goal.

    Args:
        house: The household as it stands.
        known: Numbers of the receptacles whose contents may be used.

    Returns:
        A command that can be done now, or None if nothing known leads to the goal.
    """
    goals = [goal for goal in house.world.goals if not is_reached(house, goal)]
    last = [goal for goal in goals if goal.kind == LOOK]  # undone by the next step elsewhere
    order = [goal for goal in goals if goal.kind != LOOK] or last
    return next((command for goal in order if (command := _towards(house, goal, known))), None)


def explore(house: House) -> str | None:
    """Return the next command of a player that uses only what was seen, and otherwise searches the next receptacle.

    It searches first where the goal's objects may be.

    Returns:
        A command that can be done now, or None if everything was seen and nothing leads to the goal.
    """
    command = next_command(house, house.seen)
    if command is not None:
        return command
    world = house.world
    asked = {goal.thing for goal in world.goals}
    unseen = [number for number in range(len(world.receptacles)) if number not in house.seen]
    if not unseen:
        return None
    here = house.here()
    likely = {
        number: any((world.receptacles[number].type, thing) in world.fits for thing in asked) for number in unseen
    }
    return _open_up(house, min(unseen, key=lambda number: (number not in here, not likely[number], number)))


def _towards(house: House, goal: Goal, known: Collection[int]) -> str | None:
    """Return the next command towards a goal that is not reached; None if nothing known leads there."""
    return _light(house, goal, known) if goal.kind == LOOK else _bring(house, goal, known)


def _light(house: House, goal: Goal, known: Collection[int]) -> str | None:
    lamps = {
        thing: receptacle
        for receptacle in sorted(known)
        for thing in house.contents[receptacle]
        if thing in house.world.things_of.get(goal.target, ()) and "toggleable" in house.world.things[thing].abilities
    }
    wanted = house.world.things_of.get(goal.thing, ())
    if not lamps or not (house.held in wanted or _spots(house, wanted, known)):
        return None
    if house.held not in wanted:
        return _fetch(house, wanted, known)
    here = [lamp for lamp, receptacle in lamps.items() if receptacle in house.here()]
    if here and not is_lit(house, goal):
        return f"use {house.world.things[here[0]].name}"
    return _go(house, next(iter(lamps.values())))


def _bring(house: House, goal: Goal, known: Collection[int]) -> str | None:
    world = house.world
    targets = world.receptacles_of.get(goal.target, ())
    wanted = set(world.goal_things(goal))
    target = max(targets, key=lambda number: (len(wanted.intersection(house.contents[number])), -number))
    if goal.kind == TWO:
        wanted.difference_update(house.contents[target])
    if house.held not in wanted:
        made = wanted & house.marks[MARK_OF[goal.kind]] if goal.kind in MARK_OF else wanted
        first = made if _spots(house, made, known) else wanted
        return _fetch(house, first, known) if _spots(house, first, known) else None
    mark = MARK_OF.get(goal.kind)
    if mark and house.held not in house.marks[mark]:
        return _treat(house, mark)
    return _put_down(house, target)


def _treat(house: House, mark: str) -> str | None:
    world = house.world
    places = [number for kind in APPLIANCES[mark] for number in world.receptacles_of.get(kind, ())]
    if not places:
        return None
    name = world.things[house.held].name
    for number in places:
        if number in house.here():
            verb = {"clean": "clean", "hot": "heat", "cool": "cool"}[mark]
            return f"{verb} {name} with {world.receptacles[number].name}"
    return _go(house, places[0])


def _spots(house: House, wanted: Collection[int], known: Collection[int]) -> list[tuple[int, int]]:
    """Return pairs (receptacle, thing) for the wanted things, those that can be taken at once first."""
    here = house.here()
    return sorted(
        (
            (receptacle, thing)
            for receptacle in known
            for thing in house.contents[receptacle]
            if thing in wanted and "pickupable" in house.world.things[thing].abilities
        ),
        key=lambda spot: (spot[0] not in here, spot),
    )


def _fetch(house: House, wanted: Collection[int], known: Collection[int]) -> str | None:
    """Return the next command that brings one of the wanted things into the hand."""
    if house.held != NOWHERE:
        return _get_rid(house)
    receptacle, thing = _spots(house, wanted, known)[0]
    if receptacle in house.here() and house.is_accessible(receptacle):
        return f"take {house.world.things[thing].name} from {house.world.receptacles[receptacle].name}"
    return _open_up(house, receptacle)


def _get_rid(house: House) -> str | None:
    """Return the next command that puts the held thing down, away from where the goal wants its kind."""
    world = house.world
    kind = world.things[house.held].type
    asked = {goal.target for goal in world.goals if goal.thing == kind}
    places = [n for n, each in enumerate(world.receptacles) if (each.type, kind) in world.fits]
    here = house.here()
    order = sorted(
        places,
        key=lambda n: (world.receptacles[n].type in asked, n not in here, not house.is_accessible(n), n),
    )
    return _put_down(house, order[0]) if order else None


def _put_down(house: House, receptacle: int) -> str | None:
    if receptacle in house.here() and house.is_accessible(receptacle):
        return f"move {house.world.things[house.held].name} to {house.world.receptacles[receptacle].name}"
    return _open_up(house, receptacle)


def _open_up(house: House, receptacle: int) -> str:
    """Return the next command that makes a receptacle accessible."""
    if receptacle in house.here():
        return f"open {house.world.receptacles[receptacle].name}"
    return _go(house, receptacle)


def _go(house: House, receptacle: int) -> str:
    return f"go to {house.world.receptacles[receptacle].name}"
