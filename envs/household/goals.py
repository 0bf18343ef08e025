"""Goals of a household, and the progress that the agent can know."""

from __future__ import annotations

from turngym.arithmetic import float_sum
from turngym.envs.household.rules import House
from turngym.envs.household.world import LOOK, MARK_OF, TWO, Goal


def is_reached(house: House, goal: Goal) -> bool:
    """Return whether a goal is reached, by whatever is where.

    >>> from turngym.envs.household.world import PLACE, Receptacle, Thing, World
    >>> goal = Goal(PLACE, "mug", "desk")
    >>> house = House(World((Receptacle("desk 1", "desk", 1),), (Thing("mug 1", "mug"),), frozenset(), ((0, 0),), (),
    ...     (goal,), "put a mug on a desk"))
    >>> is_reached(house, goal)
    True
    """
    world = house.world
    if goal.kind == LOOK:
        return is_lit(house, goal) and house.held in world.things_of.get(goal.thing, ())
    wanted = set(world.goal_things(goal))
    if goal.kind in MARK_OF:
        wanted &= house.marks[MARK_OF[goal.kind]]
    needed = 2 if goal.kind == TWO else 1
    return any(
        len(wanted.intersection(house.contents[receptacle])) >= needed
        for receptacle in world.receptacles_of.get(goal.target, ())
    )


def is_lit(house: House, goal: Goal) -> bool:
    """Return whether a lamp of the goal's type is on where the agent stands."""
    lamps = house.marks["on"].intersection(house.world.things_of.get(goal.target, ()))
    return bool(lamps) and any(not lamps.isdisjoint(house.contents[number]) for number in house.here())


def known_marks(house: House, thing: int) -> tuple[str, ...]:
    """Return what the agent can know about the state of an object: its own actions, and what it saw on examining it."""
    return tuple(
        mark
        for mark, things in house.marks.items()
        if thing in things and (thing in house.examined or (mark, thing) not in house.world.marks)
    )


def progress(house: House) -> float:
    """Return the share of the goal's conditions that the agent knows to hold, at the best thing for it, in [0, 1].

    The conditions are that the thing has been cleaned, heated or cooled, and that it is where it should; that the first
    and the second thing lie there; that the thing is held, and that it is held where a lamp of the kind is on.
    """
    shares = [_share(house, goal) for goal in house.world.goals]
    return float_sum(shares) / len(shares)


def _share(house: House, goal: Goal) -> float:
    world = house.world
    if goal.kind == LOOK:
        is_held = house.held in world.things_of.get(goal.thing, ())
        return (is_held + is_lit(house, goal)) / 2
    wanted = set(world.goal_things(goal))
    placed = [
        wanted.intersection(house.contents[receptacle])
        for receptacle in world.receptacles_of.get(goal.target, ())
        if receptacle in house.seen
    ]
    if goal.kind == TWO:
        return min(2, max(map(len, placed), default=0)) / 2
    lying = set().union(*placed)
    if goal.kind not in MARK_OF:
        return float(bool(lying))
    mark = MARK_OF[goal.kind]
    made = {thing for thing in house.marks[mark] & wanted if mark in known_marks(house, thing)}
    return 1.0 if made & lying else (bool(made) or bool(lying)) / 2
