"""The tiles that a picture of a Minesweeper board is made of."""

from __future__ import annotations

from functools import lru_cache

from turngym.envs.textgames import drawing

TILE_SIDE = 16
SYMBOLS = ".012345678F*"
"""Closed, the numbers, a flag, and the mine that was opened."""

_NUMBER_COLOURS = (
    drawing.BLUE,
    drawing.GREEN,
    drawing.RED,
    drawing.PURPLE,
    drawing.BROWN,
    drawing.CYAN,
    drawing.BLACK,
    drawing.GREY,
)


@lru_cache(maxsize=1)
def tiles() -> drawing.Picture:
    """Return one tile for each of ``SYMBOLS``, as ``drawing.paint`` takes them.

    >>> tiles().shape
    (12, 16, 16, 3)
    """
    found = []
    for symbol in SYMBOLS:
        is_closed = symbol in ".F"
        tile = drawing.tile(TILE_SIDE, drawing.GREY if is_closed else drawing.LIGHT, drawing.DARK)
        if symbol in "12345678":
            drawing.write(tile, symbol, _NUMBER_COLOURS[int(symbol) - 1])
        if symbol == "F":
            drawing.flag(tile, drawing.RED)
        if symbol == "*":
            drawing.box(tile, 0.1, 0.1, 0.9, 0.9, drawing.RED)
            drawing.disc(tile, 0.5, 0.5, 0.3, drawing.BLACK)
        found.append(tile)
    return drawing.stack(found)
