"""The engine: the commands of a household, their effects and their text.

The rules are those of ALFWorld's planning domain (Shridhar et al. 2021, arXiv 2010.03768), written by hand for this one
domain: a few dictionary look-ups replace the planner's translation and the grammar's derivation.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from turngym.envs.household.world import ABILITY_OF, APPLIANCES, KNIVES, MARKS, NOWHERE, World
from turngym.types import JSONValue

_LONGEST = 1000
NOTHING_HAPPENS = "Nothing happens."
_PUT = re.compile(r"(?:put|place) (.+?) (?:in/on|into|onto|inside|in|on|to) (?:the )?(.+)")
_VERB = {"clean": "clean", "hot": "heat", "cool": "cool"}


class Move(NamedTuple):
    """Meaning of a command.

    Args:
        verb: Its first word, with ``put`` and ``move`` being one.
        thing: Number of the thing, -1 for none.
        receptacle: Number of the receptacle or, for ``slice``, of the knife; -1 for none.
    """

    verb: str
    thing: int = -1
    receptacle: int = -1


@lru_cache(maxsize=4096)
def canonical(command: str) -> str:
    """Return a command as it stands in the list of commands: lower case, single spaces, ``move X to Y``.

    >>> canonical(" Put  mug 1 in/on desk 2")
    'move mug 1 to desk 2'
    """
    text = " ".join(command.lower().split())
    found = _PUT.fullmatch(text)
    return f"move {found[1]} to {found[2]}" if found else text


class House:
    """A household in play.

    Args:
        world: The game at its start.
        help_text: Answer of the command ``help``.
        relists: Whether ``look`` in the middle of the room lists the receptacles as the first observation does; in
            ALFWorld it lists nothing.
    """

    __slots__ = (
        "around",
        "contents",
        "examined",
        "held",
        "help_text",
        "location",
        "marks",
        "moves",
        "opened",
        "relists",
        "removed",
        "seen",
        "world",
    )

    def __init__(self, world: World, help_text: str = "", relists: bool = True) -> None:
        self.world = world
        self.help_text = help_text
        self.relists = relists
        self.location = world.start
        self.held = NOWHERE
        self.contents: list[list[int]] = [[] for _ in world.receptacles]
        for thing, receptacle in sorted(world.inside):
            self.contents[receptacle].append(thing)
        self.opened: set[int] = set()
        self.marks: dict[str, set[int]] = {mark: set() for mark in MARKS}
        for mark, thing in world.marks:
            self.marks[mark].add(thing)
        self.around: set[tuple[int, int]] = set(world.around)
        self.removed: set[tuple[int, int]] = set()
        self.seen: set[int] = set()
        self.examined: set[int] = set()
        self._look_about()

    # What can be seen and done here.

    def here(self) -> tuple[int, ...]:
        """Return the numbers of the receptacles at the agent's location."""
        return self.world.at.get(self.location, ())

    def is_accessible(self, receptacle: int) -> bool:
        """Return whether a receptacle is open, or needs no opening."""
        return not self.world.receptacles[receptacle].is_openable or receptacle in self.opened

    def _look_about(self) -> None:
        """Record what the agent can see from here, and list what it can do."""
        for receptacle in self.here():
            if self.is_accessible(receptacle):
                self.seen.add(receptacle)
        self.moves = self._list_moves()

    def _list_moves(self) -> dict[str, Move]:
        """Return command -> meaning for everything that can be done now."""
        world, location = self.world, self.location
        moves = {command: Move("go", -1, number) for place, command, number in world.ways if place != location}
        moves["help"], moves["inventory"], moves["look"] = Move("help"), Move("inventory"), Move("look")
        for number in self.here():
            receptacle = world.receptacles[number]
            moves[f"examine {receptacle.name}"] = Move("examine", -1, number)
            if receptacle.is_openable:
                verb = "close" if number in self.opened else "open"
                moves[f"{verb} {receptacle.name}"] = Move(verb, -1, number)
            self._add_contents(moves, number, self.is_accessible(number))
        if self.held != NOWHERE:
            self._add_held(moves)
        return moves

    def _add_contents(self, moves: dict[str, Move], number: int, is_accessible: bool) -> None:
        """Add what can be done with the things in a receptacle."""
        for thing in self.contents[number]:
            _, name, abilities = self._describe(thing)
            if is_accessible and self.held == NOWHERE and "pickupable" in abilities:
                moves[f"take {name} from {self.world.receptacles[number].name}"] = Move("take", thing, number)
            if "toggleable" in abilities:
                moves[f"use {name}"] = Move("use", thing, number)

    def _add_held(self, moves: dict[str, Move]) -> None:
        """Add what can be done with the thing in the hand."""
        kind, name, abilities = self._describe(self.held)
        moves[f"examine {name}"] = Move("examine", self.held)
        for number in self.here():
            receptacle = self.world.receptacles[number]
            if (receptacle.type, kind) in self.world.fits and self.is_accessible(number):
                moves[f"move {name} to {receptacle.name}"] = Move("move", self.held, number)
            for mark, types in APPLIANCES.items():
                if receptacle.type in types and ABILITY_OF[mark] in abilities:
                    moves[f"{_VERB[mark]} {name} with {receptacle.name}"] = Move(mark, self.held, number)
        if kind in KNIVES:
            for thing, location in self.around:
                if location == self.location and "sliceable" in self.world.things[thing].abilities:
                    moves[f"slice {self.world.things[thing].name} with {name}"] = Move("slice", thing, self.held)

    def _describe(self, thing: int) -> tuple[str, str, frozenset[str]]:
        found = self.world.things[thing]
        return found.type, found.name, found.abilities

    def commands(self) -> tuple[str, ...]:
        """Return everything that can be done now, in alphabetical order."""
        return tuple(sorted(self.moves))

    # Actions.

    def act(self, command: str) -> str | None:
        """Do what a command says.

        Returns:
            The response, or None if it cannot be done now.
        """
        if len(command) > _LONGEST:  # it would stay in the cache of canonical commands
            return None
        move = self.moves.get(command) or self.moves.get(canonical(command))
        if move is None:
            return None
        verb, thing, receptacle = move
        if verb in ("look", "inventory", "help", "examine"):
            return self._tell(move)
        if verb == "go":
            self.location = self.world.receptacles[receptacle].location
        elif verb == "open":
            self.opened.add(receptacle)
        elif verb == "close":
            self.opened.remove(receptacle)
        elif verb == "take":
            self._take(thing, receptacle)
        elif verb == "move":
            self._put(thing, receptacle)
        else:
            self._mark(verb, thing)
        self._look_about()
        return self._tell(move)

    def _take(self, thing: int, receptacle: int) -> None:
        self.contents[receptacle].remove(thing)
        self.removed.add((thing, receptacle))
        self.around.discard((thing, self.location))
        self.held = thing

    def _put(self, thing: int, receptacle: int) -> None:
        if thing not in self.contents[receptacle]:  # some of ALFWorld's things lie in two receptacles
            insort(self.contents[receptacle], thing)
        self.removed.discard((thing, receptacle))
        self.around.add((thing, self.location))
        self.held = NOWHERE

    def relocate(self, thing: int, old: int, new: int) -> None:
        """Move an unseen thing from one receptacle to another."""
        self.contents[old].remove(thing)
        insort(self.contents[new], thing)
        self.around.discard((thing, self.world.receptacles[old].location))
        self.around.add((thing, self.world.receptacles[new].location))

    def _mark(self, verb: str, thing: int) -> None:
        self.marks[{"use": "on", "slice": "sliced"}.get(verb, verb)].add(thing)
        if verb in ("hot", "cool"):
            self.marks["cool" if verb == "hot" else "hot"].discard(thing)

    # Descriptions.

    def _tell(self, move: Move) -> str:
        verb, number, receptacle = move
        if verb == "look":
            return self.look() if self.relists or self.here() else self._room("nothing")
        if verb == "inventory":
            return self.inventory()
        if verb == "help":
            return self.help_text
        thing = self.world.things[number].name if number >= 0 else ""
        if verb == "slice":
            return f"You sliced the {thing} with the {self.world.things[receptacle].name}."
        place = self.world.receptacles[receptacle].name if receptacle >= 0 else ""
        if verb == "examine":
            return self.describe_thing(number) if number >= 0 else self.describe_receptacle(receptacle)
        if verb == "go":
            return f"You arrive at {place}. {self.describe_receptacle(receptacle)}"
        if verb == "open":
            return f"You open the {place}. {self.describe_receptacle(receptacle)}"
        if verb in _VERB:
            return f"You {_VERB[verb]} the {thing} using the {place}."
        return {
            "close": f"You close the {place}.",
            "take": f"You pick up the {thing} from the {place}.",
            "move": f"You move the {thing} to the {place}.",
            "use": f"You turn on the {thing}.",
        }[verb]

    def _room(self, listed: str) -> str:
        return f"You are in the middle of a room. Looking quickly around you, you see {listed}."

    def look(self) -> str:
        """Return what the agent sees: the room, or what is at its location."""
        here = self.here()
        if not here:
            return self._room(enumerate_names(each.name for each in self.world.receptacles))
        facing = _join([self.world.receptacles[number].name for number in here])
        left = [
            self.world.things[thing].name
            for thing, receptacle in sorted(self.removed)
            if (thing, self.location) in self.around and receptacle in here
        ]
        return f"You are facing the {facing}. Next to it, you see {enumerate_names(left)}."

    def inventory(self) -> str:
        """Return the response to ``inventory``."""
        if self.held == NOWHERE:
            return "You are not carrying anything."
        return f"You are carrying: a {self.world.things[self.held].name}."

    def describe_receptacle(self, number: int) -> str:
        """Return what can be seen of a receptacle."""
        receptacle = self.world.receptacles[number]
        if not self.is_accessible(number):
            return f"The {receptacle.name} is closed."
        listed = enumerate_names(self.world.things[thing].name for thing in self.contents[number])
        if receptacle.is_openable:
            return f"The {receptacle.name} is open. In it, you see {listed}."
        return f"On the {receptacle.name}, you see {listed}."

    def describe_thing(self, number: int) -> str:
        """Return what can be seen of a thing, and record that it was examined."""
        self.examined.add(number)
        thing = self.world.things[number]
        if "isreceptacleobject" in thing.abilities:
            listed = enumerate_names(self.world.things[inner].name for inner in thing.inside)
            return f"This is a normal {thing.name}. In it, you see {listed}."
        clean, hot, cool, sliced, on = (number in self.marks[mark] for mark in MARKS)
        warmth = "hot" if hot else "cool" if cool else ""
        if sliced or clean or hot:
            words = " and ".join(word for word in (warmth, "clean" if clean else "") if word)
            return f"This is a {words + ' ' if words else ''}{'sliced ' if sliced else ''}{thing.name}."
        if cool:
            return f"This is a cold {thing.name}."
        if on and "toggleable" in thing.abilities:
            return f"This {thing.name} is on."
        return f"There's nothing special about {thing.name}."

    # Snapshots.

    def state(self) -> JSONValue:
        """Return the mutable state of a game as a JSON value."""
        return {
            "location": self.location,
            "held": self.held,
            "contents": [list(each) for each in self.contents],
            "opened": sorted(self.opened),
            "marks": {mark: sorted(things) for mark, things in self.marks.items()},
            "around": sorted(self.around),
            "removed": sorted(self.removed),
            "seen": sorted(self.seen),
            "examined": sorted(self.examined),
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: It belongs to another game.
        """
        things, receptacles = range(len(self.world.things)), range(len(self.world.receptacles))
        contents = [list(map(int, each)) for each in state["contents"]]
        around = {(thing, location) for thing, location in state["around"]}
        removed = {(thing, receptacle) for thing, receptacle in state["removed"]}
        marks = {mark: set(state["marks"][mark]) for mark in MARKS}
        held, location = state["held"], state["location"]
        opened, seen, examined = set(state["opened"]), set(state["seen"]), set(state["examined"])
        known_things = {thing for each in (*contents, *marks.values(), examined) for thing in each}
        if len(contents) != len(receptacles) or not known_things <= set(things) or held not in (NOWHERE, *things):
            raise ValueError("things or receptacles that the game has not")
        if not (opened | seen) <= set(receptacles) or not isinstance(location, int):
            raise ValueError("receptacles that the game has not")
        self.contents, self.around, self.removed, self.marks = contents, around, removed, marks
        self.held, self.location, self.opened, self.seen, self.examined = held, location, opened, seen, examined
        self._look_about()


def enumerate_names(names: Iterable[str]) -> str:
    """Return names with their articles.

    >>> enumerate_names(["mug 1", "cup 2", "pan 1"]), enumerate_names([])
    ('a mug 1, a cup 2, and a pan 1', 'nothing')
    """
    return _join([f"a {name}" for name in names])


def _join(parts: list[str]) -> str:
    if len(parts) < 2:
        return parts[0] if parts else "nothing"
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"
