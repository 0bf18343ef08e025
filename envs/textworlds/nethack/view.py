"""The screen of NetHack in words: what the game says, the state of the player, what is near, and a part of the map."""

from __future__ import annotations

from typing import Any

from turngym.envs.textworlds.nethack.paths import MAP_GLYPHS, Cell

WIDE, HIGH = 12, 6
"""Cells of the shown map to each side, and up and down."""
_MOST_THINGS = 12
_HUNGER = {0: "satiated", 2: "hungry", 3: "weak", 4: "fainting", 5: "fainted", 6: "starved"}
_BURDEN = {1: "burdened", 2: "stressed", 3: "strained", 4: "overtaxed", 5: "overloaded"}
_CONDITIONS = (
    "stone",
    "slimed",
    "strangled",
    "food poisoned",
    "ill",
    "blind",
    "deaf",
    "stunned",
    "confused",
    "hallucinating",
    "levitating",
    "flying",
    "riding",
)
_PLAIN = frozenset((0, *range(1, 12), 19, 20, 21, 22))
"""Kinds of ground that are not named: rock, walls, floor and corridors."""


def place(dx: int, dy: int) -> str:
    """Return a place relative to the player.

    >>> place(-2, 1), place(0, -3)
    ('2 west 1 south', '3 north')
    """
    parts = [f"{abs(dx)} {'west' if dx < 0 else 'east'}"] if dx else []
    return " ".join([*parts, *([f"{abs(dy)} {'north' if dy < 0 else 'south'}"] if dy else [])])


def at(numbers: Any) -> Cell:
    """Return where the player is, from the statistics of the package."""
    return int(numbers[0]), int(numbers[1])


def things(glyphs: Any, names: Any, here: Cell) -> list[str]:
    """Return what can be seen or is remembered, apart from floor and walls, nearest first."""
    rows, columns = (glyphs != MAP_GLYPHS).nonzero()
    found = []
    for y, x in zip(rows.tolist(), columns.tolist(), strict=True):
        dx, dy = x - here[0], y - here[1]
        if (dx or dy) and int(glyphs[y, x]) - MAP_GLYPHS not in _PLAIN:
            name = bytes(names[y, x]).split(b"\0")[0].decode("latin-1")
            found.append((max(abs(dx), abs(dy)), dy, dx, name))
    return [f"{name} {place(dx, dy)}" for _, dy, dx, name in sorted(found) if name]


def near(glyphs: Any, names: Any, here: Cell) -> str:
    """Return the nearest things with their places."""
    found = things(glyphs, names, here)
    more = [f"{len(found) - _MOST_THINGS} more"] if len(found) > _MOST_THINGS else []
    return ", ".join(found[:_MOST_THINGS] + more) or "nothing"


def whole_map(chars: Any) -> list[str]:
    """Return the rows of the map."""
    return [bytes(row).decode("latin-1").rstrip() for row in chars]


def near_map(chars: Any, here: Cell) -> str:
    """Return the part of the map around the player, without empty rows and columns at its edges."""
    left, top = max(0, here[0] - WIDE), max(0, here[1] - HIGH)
    part = chars[top : here[1] + HIGH + 1, left : here[0] + WIDE + 1]
    rows, columns = (part != ord(" ")).nonzero()
    if not len(rows):
        return ""
    part = part[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    return "\n".join(bytes(row).decode("latin-1").rstrip() for row in part)


def status(numbers: Any) -> str:
    """Return the state of the player, without the time."""
    hunger, burden, mask = _HUNGER.get(int(numbers[21]), ""), _BURDEN.get(int(numbers[22]), ""), int(numbers[25])
    troubles = [hunger, burden, *(name for bit, name in enumerate(_CONDITIONS) if mask >> bit & 1)]
    words = [
        f"HP {int(numbers[10])}/{int(numbers[11])}",
        f"power {int(numbers[14])}/{int(numbers[15])}",
        f"AC {int(numbers[16])}",
        f"experience level {int(numbers[18])}",
        f"dungeon level {int(numbers[12])}",
        f"gold {int(numbers[13])}",
        *(each for each in troubles if each),
    ]
    return ", ".join(words)


def inventory(letters: Any, texts: Any) -> str:
    """Return the things that the player has, by their letters."""
    held = [
        f"{chr(int(letter))} {bytes(text).split(bytes(1))[0].decode('latin-1')}"
        for letter, text in zip(letters, texts, strict=True)
        if letter
    ]
    return ", ".join(held) or "nothing"
