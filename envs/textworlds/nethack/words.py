"""Commands in words: an allow-list, so that no text of a player reaches other keys of NetHack.

Saving, quitting, the shell, options, other modes of play, macros and names are not among them.
"""

from __future__ import annotations

from typing import NamedTuple

DIRECTIONS = {
    "north": "k",
    "south": "j",
    "east": "l",
    "west": "h",
    "northeast": "u",
    "northwest": "y",
    "southeast": "n",
    "southwest": "b",
}
"""Direction -> key."""
MOST_TIMES = 20
"""Most turns of a search or a rest."""
_MOST_ANSWERS = 4
_ANSWERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ$-")
_SAID = {**DIRECTIONS, "up": "<", "down": ">", "self": ".", "yes": "y", "no": "n", "all": ","}


class Command(NamedTuple):
    """Keys of a command at the prompt of the game, and answers to the questions that it asks.

    Args:
        keys: Codes of the keys.
        answers: A key for each question.
        times: Turns of the game that it asks for.
    """

    keys: tuple[int, ...]
    answers: str = ""
    times: int = 1


def _meta(letter: str) -> int:
    return 0x80 | ord(letter)


VERBS: dict[str, int] = {
    "up": ord("<"),
    "down": ord(">"),
    "search": ord("s"),
    "wait": ord("."),
    "look": ord(":"),
    "inventory": ord("i"),
    "pick up": ord(","),
    "open": ord("o"),
    "close": ord("c"),
    "kick": 4,
    "eat": ord("e"),
    "drink": ord("q"),
    "read": ord("r"),
    "wield": ord("w"),
    "wear": ord("W"),
    "take off": ord("T"),
    "put on": ord("P"),
    "remove": ord("R"),
    "zap": ord("z"),
    "cast": ord("Z"),
    "throw": ord("t"),
    "fire": ord("f"),
    "quiver": ord("Q"),
    "swap": ord("x"),
    "apply": ord("a"),
    "drop": ord("d"),
    "pay": ord("p"),
    "pray": _meta("p"),
    "chat": _meta("c"),
    "dip": _meta("d"),
    "force": _meta("f"),
    "invoke": _meta("i"),
    "loot": _meta("l"),
    "offer": _meta("o"),
    "rub": _meta("r"),
    "sit": _meta("s"),
    "untrap": _meta("u"),
    "turn undead": _meta("t"),
}
"""Command -> key."""
_BEFORE = {"pray": "y"}
_AFTER = {"pick up": ","}


def commands_of(keys: frozenset[int]) -> frozenset[str]:
    """Return the commands that a task allows: ``"north"``, ``"far"``, ``"attack"`` and those of ``VERBS``.

    Args:
        keys: Keys that the task allows.
    """
    names = [*DIRECTIONS, "far", "attack", *VERBS]
    key_of = {**{name: ord(key) for name, key in DIRECTIONS.items()}, "far": ord("L"), "attack": ord("F"), **VERBS}
    return frozenset(name for name in names if key_of[name] in keys)


def parse(text: str, allowed: frozenset[str]) -> Command | None:
    """Read one command, None if it is not among those that are allowed.

    >>> parse("far east", frozenset({"far"})), parse("search 5", frozenset({"search"}))
    (Command(keys=(76,), answers='', times=1), Command(keys=(53, 115), answers='', times=5))
    >>> parse("save", commands_of(frozenset(range(256)))) is None
    True
    """
    words = text.split()
    name = " ".join(words[:2]) if " ".join(words[:2]) in VERBS else words[0] if words else ""
    rest = words[len(name.split()) :]
    if name not in allowed:
        return None
    if name in DIRECTIONS:
        return Command((ord(DIRECTIONS[name]),)) if not rest else None
    if name in ("far", "attack"):
        return _aimed(name, rest)
    if name in ("search", "wait") and rest:
        return _repeated(VERBS[name], rest)
    answers = "".join(_SAID.get(each, each if len(each) == 1 else "?") for each in rest)
    if len(rest) > _MOST_ANSWERS or not set(answers) <= _ANSWERS | set(_SAID.values()):
        return None
    return Command((VERBS[name],), _BEFORE.get(name, "") + (answers or _AFTER.get(name, "")))


def _aimed(name: str, rest: list[str]) -> Command | None:
    key = DIRECTIONS.get(" ".join(rest))
    if key is None:
        return None
    return Command((ord(key.upper()),) if name == "far" else (ord("F"), ord(key)))


def _repeated(key: int, rest: list[str]) -> Command | None:
    number = rest[0]
    if len(rest) > 1 or not (number.isascii() and number.isdigit() and len(number) < 3):
        return None
    times = int(number)
    return Command((*map(ord, str(times)), key), times=times) if 1 <= times <= MOST_TIMES else None
