"""Generates households: rooms, receptacles, objects and a solvable task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from turngym.envs.household.furniture import (
    ASKS,
    FITS,
    LAMP,
    LAMP_PLACES,
    LIT_ROOMS,
    NEEDS,
    RECEPTACLES,
    ROOMS,
    THINGS,
)
from turngym.envs.household.world import ABILITY_OF, KINDS, LOOK, MARK_OF, PLACE, TWO, Goal, Receptacle, Thing, World

OneT = TypeVar("OneT")
_DRAWS = 256
_LIKENESS = 0.12
"""Probability that a distractor has the type of a goal's object."""
_TRIES = 30
_ABLE = {
    kind: [
        name for name, thing in THINGS.items() if kind not in MARK_OF or ABILITY_OF[MARK_OF[kind]] in thing.abilities
    ]
    for kind in KINDS
}
"""Kind of task -> types of the things that it can be about."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A compact description of a household.

    Args:
        rooms: Names of the rooms.
        receptacles: Type -> number.
        things: Names of things, each with the name of the receptacle it is in.
        goals: Goal.
    """

    rooms: tuple[str, ...]
    receptacles: tuple[tuple[str, int], ...]
    things: tuple[tuple[str, str], ...]
    goals: tuple[Goal, ...]

    @property
    def text(self) -> str:
        """The household as canonical text."""
        stands = " ".join(f"{kind}*{count}" for kind, count in self.receptacles)
        holds = "; ".join(f"{thing} in {receptacle}" for thing, receptacle in self.things)
        goals = "; ".join(f"{goal.kind} {goal.thing} {goal.target}" for goal in self.goals)
        return f"{stands} | {holds} | {goals}"

    def as_json(self) -> list[Any]:
        """Return the household as a value that JSON can hold."""
        goals = [[goal.kind, goal.thing, goal.target] for goal in self.goals]
        return [list(self.rooms), *([list(each) for each in part] for part in (self.receptacles, self.things)), goals]

    @classmethod
    def from_json(cls, value: Any) -> Plan:
        """Return what ``as_json`` wrote."""
        rooms, receptacles, things, goals = value
        return cls(
            tuple(map(str, rooms)),
            tuple((str(kind), int(count)) for kind, count in receptacles),
            tuple((str(thing), str(place)) for thing, place in things),
            tuple(Goal(*map(str, goal)) for goal in goals),
        )


class _Chance:
    """Choices from one array of random numbers: calling the generator for each would dominate the time."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._numbers: list[float] = []

    def number(self) -> float:
        if not self._numbers:
            self._numbers = self._generator.random(_DRAWS).tolist()
        return self._numbers.pop()

    def one(self, choices: Sequence[OneT]) -> OneT:
        return choices[int(self.number() * len(choices))]

    def shuffle(self, items: list[OneT]) -> list[OneT]:
        return [items[place] for _, place in sorted((self.number(), place) for place in range(len(items)))]


def draw_plan(
    generator: np.random.Generator,
    kinds: Sequence[str],
    *,
    rooms: int = 1,
    receptacles: int = 10,
    distractors: int = 10,
    subtasks: int = 1,
) -> Plan:
    """Sample a household whose task can be solved.

    Args:
        generator: The source of randomness.
        kinds: Kinds of task to choose from.
        rooms: Number of rooms, 1 to 4.
        receptacles: Number of receptacles; a little more or less where rooms and task require it.
        distractors: Number of things that are not asked for.
        subtasks: Number of goals, all at the same time.

    >>> from turngym.envs.household.world import KINDS
    >>> plan = draw_plan(np.random.default_rng(0), KINDS)
    >>> Plan.from_json(plan.as_json()) == plan
    True
    """
    chance = _Chance(generator)
    while True:
        chosen_rooms, chosen = _choose_kinds(chance, kinds, rooms, subtasks)
        stands = _choose_receptacles(chance, chosen_rooms, chosen, receptacles)
        goals = _choose_goals(chance, chosen, stands)
        if goals is None:
            continue
        names = [f"{kind} {number}" for kind, count in stands for number in range(1, count + 1)]
        placed = _place(chance, names, goals, distractors)
        numbers = Counter(kind for kind, _ in placed)
        things = []
        for kind, place in sorted(chance.shuffle(placed), key=lambda pair: pair[0]):
            things.append((f"{kind} {numbers[kind]}", place))
            numbers[kind] -= 1
        return Plan(chosen_rooms, stands, tuple(things), goals)


def _rooms_for(kind: str) -> tuple[str, ...]:
    if kind == LOOK:
        return LIT_ROOMS
    needed = NEEDS.get(kind)
    return tuple(room for room, types in ROOMS.items() if needed is None or needed in types)


def _choose_kinds(
    chance: _Chance, kinds: Sequence[str], rooms: int, subtasks: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rooms, and a kind for each goal; at most one is to look at something, the last."""
    first = chance.one(kinds)
    chosen = [chance.one(_rooms_for(first))]
    while len(chosen) < rooms:
        chosen.append(chance.one([room for room in ROOMS if room not in chosen]))
    goals = [first]
    while len(goals) < subtasks:
        possible = [
            kind
            for kind in kinds
            if not (kind == LOOK and LOOK in goals) and not set(_rooms_for(kind)).isdisjoint(chosen)
        ]
        goals.append(chance.one(possible or [PLACE]))
    return tuple(chosen), tuple(sorted(goals, key=lambda kind: kind == LOOK))


def _choose_receptacles(
    chance: _Chance, rooms: Sequence[str], kinds: Sequence[str], count: int
) -> tuple[tuple[str, int], ...]:
    stands = Counter(NEEDS[kind] for kind in kinds if kind in NEEDS)
    stands = Counter(dict.fromkeys(stands, 1))
    types = sorted({kind for room in rooms for kind in ROOMS[room]})
    if LOOK in kinds:
        stands[chance.one([kind for kind in types if kind in LAMP_PLACES])] += 1
    pool = [kind for kind in types for _ in range(RECEPTACLES[kind].most - stands[kind])]
    for kind in chance.shuffle(pool)[: max(0, count - stands.total())]:
        stands[kind] += 1
    return tuple(sorted(stands.items()))


def _choose_goals(chance: _Chance, kinds: Sequence[str], stands: Sequence[tuple[str, int]]) -> tuple[Goal, ...] | None:
    """Return a goal of each kind about different things, None if the receptacles do not allow it."""
    goals: list[Goal] = []
    types = [kind for kind, _ in stands]
    for kind in kinds:
        for _ in range(_TRIES):
            thing = chance.one(_ABLE[kind])
            places = [place for place in types if (place, thing) in FITS]
            if len(places) > 1 and all(goal.thing != thing for goal in goals):
                goals.append(Goal(kind, thing, LAMP if kind == LOOK else chance.one(places)))
                break
        else:
            return None
    return tuple(goals)


def _place(chance: _Chance, names: Sequence[str], goals: Sequence[Goal], distractors: int) -> list[tuple[str, str]]:
    """Return pairs (type of a thing, name of its receptacle); nothing is where it is asked for."""
    asked = {(goal.target, goal.thing) for goal in goals}
    wanted = [goal.thing for goal in goals for _ in range(2 if goal.kind == TWO else 1)]
    here = [name.split()[0] for name in names]
    present = sorted({kind for place in here for kind in THINGS if (place, kind) in FITS})
    while distractors:
        distractors -= 1
        wanted.append(chance.one(goals).thing if chance.number() < _LIKENESS else chance.one(present))
    placed = []
    for kind in wanted:
        places = [n for n, p in zip(names, here, strict=True) if (p, kind) in FITS and (p, kind) not in asked]
        if places:
            placed.append((kind, chance.one(places)))
    if any(goal.kind == LOOK for goal in goals):
        placed.append((LAMP, chance.one([n for n, p in zip(names, here, strict=True) if p in LAMP_PLACES])))
    return placed


def build(plan: Plan) -> World:
    """Return the household that a plan describes. Every receptacle has its own location."""
    receptacles = tuple(
        Receptacle(f"{kind} {number}", kind, 0, RECEPTACLES[kind].is_openable)
        for kind, count in plan.receptacles
        for number in range(count, 0, -1)
    )
    receptacles = tuple(
        Receptacle(each.name, each.type, place, each.is_openable) for place, each in enumerate(receptacles, 1)
    )
    number_of = {each.name: number for number, each in enumerate(receptacles)}
    things = tuple(_thing(name) for name, _ in plan.things)
    inside = tuple((number, number_of[place]) for number, (_, place) in enumerate(plan.things))
    return World(
        receptacles=receptacles,
        things=things,
        fits=FITS,
        inside=inside,
        around=tuple((thing, receptacles[place].location) for thing, place in inside),
        goals=plan.goals,
        task=f"Your task is to: {' and '.join(map(ask, plan.goals))}.",
    )


def _thing(name: str) -> Thing:
    kind = name.split()[0]
    if kind == LAMP:
        return Thing(name, kind, frozenset({"toggleable"}))
    return Thing(name, kind, frozenset({"pickupable", *THINGS[kind].abilities}))


def ask(goal: Goal) -> str:
    """Return a goal in words.

    >>> ask(Goal(TWO, "key", "desk"))
    'put two keys on a desk'
    """
    place = RECEPTACLES.get(goal.target)
    preposition = place.preposition if place else ""
    several = THINGS[goal.thing].several or f"{goal.thing}s"
    return ASKS[goal.kind].format(
        a_thing=_with_article(goal.thing),
        thing=goal.thing,
        several=several,
        preposition=preposition,
        a_target=_with_article(goal.target),
    )


def _with_article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
