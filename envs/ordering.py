"""Order of legal actions that carries no information."""

from __future__ import annotations

import zlib


def from_drawn_place(actions: tuple[str, ...], salt: int, key: str) -> tuple[str, ...]:
    """Rotate actions by a random offset: a policy that always takes the first or last one then plays at random.

    Args:
        actions: The actions, in the order of the rules.
        salt: A random number of the episode, in [0, 2**32).
        key: Identifies the position within the episode.

    >>> from_drawn_place(("a", "b", "c"), 7, "turn 1"), from_drawn_place(("a", "b", "c"), 8, "turn 1")
    (('a', 'b', 'c'), ('b', 'c', 'a'))
    """
    if len(actions) < 2:
        return actions
    first = zlib.crc32(key.encode(), salt) % len(actions)
    return actions[first:] + actions[:first]
