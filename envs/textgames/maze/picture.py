"""The tiles that a picture of a maze is made of."""

from __future__ import annotations

from functools import lru_cache

from turngym.envs.textgames import drawing

TILE_SIDE = 16
SYMBOLS = "#_GP√?"
"""Wall, floor, goal, player, player at the goal, not seen yet."""


@lru_cache(maxsize=1)
def tiles() -> drawing.Picture:
    """Return one tile for each of ``SYMBOLS``, as ``drawing.paint`` takes them.

    >>> tiles().shape
    (6, 16, 16, 3)
    """
    found = []
    for symbol in SYMBOLS:
        colour = {"#": drawing.DARK, "?": drawing.BLACK}.get(symbol, drawing.LIGHT)
        tile = drawing.tile(TILE_SIDE, colour)
        if symbol in "G√":
            drawing.flag(tile, drawing.GREEN if symbol == "√" else drawing.RED)
        if symbol in "P√":
            drawing.person(tile, drawing.BLUE)
        found.append(tile)
    return drawing.stack(found)
