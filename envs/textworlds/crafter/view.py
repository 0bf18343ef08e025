"""What the player of Crafter sees, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WIDE, HIGH = 4, 3
"""Cells in view to each side, and up and down: those of the package's image."""
VITALS = ("health", "food", "drink", "energy")
_DARK = 0.5
_CREATURES = {"Cow": "cow", "Zombie": "zombie", "Skeleton": "skeleton", "Arrow": "arrow"}


def name_of(material: str | None, thing: Any) -> str:
    """Return the name of what is in a cell: a creature or plant, else the ground; empty beyond the world."""
    if thing is None:
        return material or ""
    kind = type(thing).__name__
    return _CREATURES.get(kind) or ("ripe plant" if getattr(thing, "ripe", False) else "sapling")


def place(x: int, y: int) -> str:
    """Return a place relative to the player.

    >>> place(-2, 1), place(0, -3)
    ('2 left 1 down', '3 up')
    """
    parts = [f"{abs(x)} {'left' if x < 0 else 'right'}"] if x else []
    return " ".join([*parts, *([f"{abs(y)} {'up' if y < 0 else 'down'}"] if y else [])])


def _seen(env: Any) -> list[tuple[str, bool, int, int]]:
    """Return name, whether it is a creature, and place of what is in view, nearest first."""
    x, y = map(int, env._player.pos)
    found = []
    for dx in range(-WIDE, WIDE + 1):
        for dy in range(-HIGH, HIGH + 1):
            material, thing = env._world[x + dx, y + dy]
            if (dx or dy) and (name := name_of(material, thing)):
                found.append((name, thing is not None, dx, dy))
    return sorted(found, key=lambda each: (abs(each[2]) + abs(each[3]), each[3], each[2]))


def _surroundings(env: Any) -> str:
    """Return the creatures in view, and of each kind of ground the nearest cell."""
    words, known = [], set()
    for name, is_creature, dx, dy in _seen(env):
        if is_creature or name not in known:
            words.append(f"{name} {place(dx, dy)}")
        known.add(name)
    return ", ".join(words)


def _amounts(items: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in items.items())


def describe(env: Any) -> str:
    """Return what the player sees, faces, has and lacks."""
    player = env._player
    faced = name_of(*env._world[tuple(int(a + b) for a, b in zip(player.pos, player.facing, strict=True))])
    held = {name: int(amount) for name, amount in player.inventory.items() if amount and name not in VITALS}
    lines = [
        f"You see: {_surroundings(env)}.",
        f"You face: {faced or 'the end of the world'}.",
        ", ".join(f"{name} {int(player.inventory[name])}" for name in VITALS) + ".",
        f"You have: {_amounts(held) or 'nothing'}.",
    ]
    if env._world.daylight < _DARK:
        lines.append("It is dark.")
    if player.sleeping:
        lines.append("You are asleep.")
    return "\n".join(lines)
