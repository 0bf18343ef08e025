"""Boards as text: rows of symbols that are drawn for every game, and so are the names of the buttons."""

from __future__ import annotations

from collections.abc import Mapping

from turngym.envs.rules import mechanics as kind
from turngym.envs.rules.game import Extra, Rules
from turngym.envs.rules.mechanics import DOWN, FIRST, HELD, PHASE, Level, State
from turngym.envs.website.draw import Dice

SYMBOLS = "0123456789abcdef"
_LETTERS = "ghjkmnpqrstuvwxyz"
_GOALS: Mapping[str, tuple[str, ...]] = {
    **{"reach": (), "collect": ("item",), "order": ("item 0", "item 1", "item 2")},
    **{"light": ("lamp 0", "lamp 1"), "match": ("lamp 0", "lamp 1", "lamp 2"), "cover": ("plate", "block")},
}
_EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    **{"key": ("key", "door"), "gate": ("shut", "open", "lever"), "portal": ("portal",), "arrow": ("arrow",)},
    **{"crumble": ("crumble",), "dial": ("dial",), "block": ("block",), "hazard": ("hazard",)},
}
_STATIC = {
    **{kind.FLOOR: "floor", kind.PLATE: "plate", kind.EXIT: "exit", kind.WALL: "wall", kind.ARROW: "arrow"},
    **{kind.LEVER: "lever", kind.HAZARD: "hazard", kind.PORTAL: "portal", kind.DIAL: "dial"},
}


class Look:
    """What a game looks like: symbols, names of buttons, and which way the board lies.

    Args:
        rules: The rules of the game.
        dice: Source of randomness.
    """

    def __init__(self, rules: Rules, dice: Dice) -> None:
        shown = range(4 if rules.move == "fall" or "dial" in rules.extras else 1)
        things = ["floor", "wall", *(f"avatar {each}" for each in shown), "exit", *_GOALS[rules.goal]]
        things += [thing for extra in rules.extras for thing in _EXTRAS[extra]]
        symbols = sorted(SYMBOLS, key=lambda symbol: dice.share())
        self.symbols = dict(zip(dict.fromkeys(things), symbols, strict=False))
        names = sorted(dice.some(_LETTERS, len(rules.buttons), len(rules.buttons)))
        self.buttons = dict(zip(names, sorted(rules.buttons, key=lambda button: dice.share()), strict=True))
        """Name -> what the button does."""
        self.is_sideways, self.flips = dice.share() < 0.5, (dice.share() < 0.5, dice.share() < 0.5)


class View:
    """Draws the states of a level.

    Args:
        level: The level.
        look: What the game looks like.
    """

    def __init__(self, level: Level, look: Look) -> None:
        self._level, self._symbols = level, look.symbols
        self._places, length, self.row = _places(level, look)
        self._empty = ["\n"] * length
        self._changing = list[tuple[int, int, int]]()
        for cell, what in enumerate(level.kinds):
            if what in _STATIC:
                self._empty[self._places[cell]] = look.symbols[_STATIC[what]]
            else:
                self._changing.append((self._places[cell], what, level.numbers[cell]))
        self._changing.sort()
        self.pattern = ""
        """The colours that lamps must have in the end, in the order of reading; empty for other goals."""
        if level.rules.goal == "match":
            lamps = [number for _, what, number in self._changing if what == kind.LAMP]
            self.pattern = "".join(look.symbols[f"lamp {level.wanted >> number & 3}"] for number in lamps)

    def board(self, state: State) -> tuple[str, str]:
        """Return the rows of a state, and the symbol that the avatar covers."""
        at, blocks, bits, turned = state
        drawn, places, symbols = self._empty.copy(), self._places, self._symbols
        for place, what, number in self._changing:
            drawn[place] = symbols[_thing(self._level, what, number, bits)]
        cell = 0
        while blocks >> cell:
            if blocks >> cell & 1:
                drawn[places[cell]] = symbols["block"]
            cell += 1
        covered = drawn[places[at]]
        drawn[places[at]] = symbols[f"avatar {turned + (bits & DOWN)}"]  # where gravity turns, directions do once
        return "".join(drawn), covered


def _places(level: Level, look: Look) -> tuple[list[int], int, int]:
    """Return for each cell its place in the text, the length of the text, and that of a row with its end."""
    height = level.height
    width = len(level.kinds) // height
    places = list[int]()
    row = (height if look.is_sideways else width) + 1
    for cell in range(len(level.kinds)):
        x, y = divmod(cell, height)
        x, y = width - 1 - x if look.flips[0] else x, height - 1 - y if look.flips[1] else y
        places.append(x * row + y if look.is_sideways else y * row + x)
    return places, max(places) + 1, row


def _thing(level: Level, what: int, number: int, bits: int) -> str:
    """Return what a cell that can change looks like now."""
    if what == kind.LAMP:
        return f"lamp {bits >> number & 3}" if level.rules.goal == "match" else f"lamp {bits >> number & 1}"
    if what in (kind.SHUT, kind.OPEN):
        return "open" if bool(bits & PHASE) == (what == kind.SHUT) else "shut"
    if what == kind.CRUMBLE:
        return "wall" if bits >> number & 1 else "crumble"
    if what in (kind.KEY, kind.DOOR):
        return "floor" if bits & HELD else "key" if what == kind.KEY else "door"
    if bits >> number & 1:
        return "floor"
    return f"item {number - FIRST}" if level.rules.goal == "order" else "item"


def changed(before: str, after: str, row: int, most: int = 8) -> str:
    r"""Return the cells that differ between two boards of a level, as rows and columns from 0.

    >>> changed("01\n00", "00\n10", 3)
    '(0,1) 1>0, (1,0) 0>1'
    """
    found = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    told = ", ".join([f"({place // row},{place % row}) {before[place]}>{after[place]}" for place in found[:most]])
    return told + (", ..." if len(found) > most else "")
