"""Text for a player of a TextWorld game, cleaned; and its knowledge of the world, from the package's facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

Fact = tuple[str, ...]
"""Name of a predicate, then what it holds of."""

PLAYER, INVENTORY = "P", "I"
_DIRECTIONS = ("north", "east", "south", "west")
_SHORT = {"n": "go north", "e": "go east", "s": "go south", "w": "go west", "l": "look", "i": "inventory"}
_OF = re.compile(r"(north|east|south|west)_of")
_STATES = frozenset(("open", "closed", "cooked", "fried", "roasted", "grilled", "burned", "sliced", "chopped", "diced"))
_LOCKED = "locked"
_PROMPT = re.compile(r"(?<!\n)\n+>[^\n]*\Z")
_ENDING = re.compile(r"Would you like to RESTART.*\Z", re.DOTALL)
_GAPS = re.compile(r"\n{3,}")
_SPACES = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)


def tidy(text: str, begin: str = "") -> str:
    r"""Return a text of the game without its prompt and the status line behind that.

    Args:
        text: Output of the game.
        begin: Text before this, such as the title, is dropped.

    >>> tidy("\n\n-= Bar =-\nYou are in a bar.\n\n\n\nIt is dark.\n\n>         -= Bar =-0/2")
    '-= Bar =-\nYou are in a bar.\n\nIt is dark.'
    """
    text = _ENDING.sub("", _PROMPT.sub("", text[max(text.find(begin), 0) :]))
    return _GAPS.sub("\n\n", _SPACES.sub("", text)).strip()


def match_command(text: str, commands: Sequence[str]) -> str | None:
    """Return the command that a text names, whatever its case, spacing and articles; None if there is none.

    >>> match_command("Take the old key from the chest", ["look", "take old key from chest"])
    'take old key from chest'
    >>> match_command("n", ["go north", "look"]), match_command("fly", ["look"])
    ('go north', None)
    """
    wanted = _plain(text)
    wanted = _SHORT.get(wanted, f"go {wanted}" if wanted in _DIRECTIONS else wanted)
    if wanted.startswith("x "):
        wanted = f"examine {wanted[2:]}"
    return next((command for command in commands if _plain(command) == wanted), None)


def _plain(text: str) -> str:
    return " ".join([word for word in text.casefold().split() if word not in ("the", "a", "an")])


class Sight:
    """Knowledge of a player about a world: each room as last seen.

    Args:
        names: Name of each room and thing; those that have none are left out of texts.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._rooms: dict[str, tuple[str, ...]] = {}
        self._carried: tuple[str, ...] = ()
        self._here = ""
        self._locks: dict[str, bool] = {}
        self._turned: set[str] = set()

    def look(self, facts: Iterable[Fact]) -> None:
        """Note what can be seen in a state of the world."""
        places: dict[str, list[str]] = {}
        states: dict[str, list[str]] = {}
        room, exits, doors = "", [], []
        facts = list(facts)
        for predicate, *of in facts:
            if predicate in ("at", "in", "on") and of[0] != PLAYER:
                places.setdefault(of[1], []).append(of[0])
            elif predicate == "at":
                room = of[1]
            elif predicate in _STATES:
                states.setdefault(of[0], []).append(predicate)
            elif predicate == _LOCKED:
                states.setdefault(of[0], []).append("closed")
        self._note_locks({of[0] for predicate, *of in facts if predicate == _LOCKED}, states)
        for predicate, *of in facts:
            if (found := _OF.fullmatch(predicate)) and of[-1] == room:
                exits.append((found[1], of[0]))
            elif predicate == "link" and of[0] == room:
                doors.append((of[2], of[1]))
        self._here = room
        self._carried = tuple(sorted(self._describe(thing, places, states) for thing in places.get(INVENTORY, ())))
        things = sorted(self._describe(thing, places, states) for thing in places.get(room, ()))
        self._rooms[room] = (*things, *self._exits(exits, dict(doors), states))

    def _note_locks(self, locked: Collection[str], states: Mapping[str, list[str]]) -> None:
        """Call what the player has locked or unlocked so; a door that it has not touched does not show its lock."""
        for thing in states:
            self._turned.update({thing} if self._locks.setdefault(thing, thing in locked) != (thing in locked) else ())
            if thing in self._turned:
                states[thing].append(_LOCKED if thing in locked else "unlocked")

    def _describe(self, thing: str, places: Mapping[str, list[str]], states: Mapping[str, list[str]]) -> str:
        """Return a thing with its state and what is on it, or in it if that can be seen."""
        told = sorted(states.get(thing, ()))
        text = self._names.get(thing, "") + (f" ({', '.join(told)})" if told else "")
        if "closed" in told or not places.get(thing):
            return text
        return f"{text} [{'; '.join(sorted(self._describe(each, places, states) for each in places[thing]))}]"

    def _exits(
        self, exits: Iterable[tuple[str, str]], doors: Mapping[str, str], states: Mapping[str, list[str]]
    ) -> list[str]:
        """Return the ways out, with the names of rooms that were seen."""
        told = []
        for direction, room in sorted(exits):
            door = doors.get(room, "")
            through = f" by {self._names.get(door, '')} ({', '.join(sorted(states.get(door, ())))})" if door else ""
            to = f" to {self._names.get(room, '')}" if room in self._rooms else ""
            told.append(f"exit {direction}{to}{through}")
        return told

    def text(self) -> str:
        """Return everything seen, in one order whatever the way there."""
        lines = [f"at {self._names.get(self._here, '')}", f"carrying: {'; '.join(self._carried)}"]
        rooms = sorted((self._names.get(room, ""), room) for room in self._rooms)
        return "\n".join([*lines, *(f"{name}: {'; '.join(self._rooms[room])}" for name, room in rooms)])
