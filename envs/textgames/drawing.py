"""Drawing for grid games: square tiles that are painted once and then copied into place.

A tile is a uint8 array [side, side, 3]; a colour is (red, green, blue). ``paint`` puts a board together from a stack of
tiles and one number per cell. Digits, letters and a few signs come from a bitmap font of 5 x 7 pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Colour: TypeAlias = tuple[int, int, int]
Picture: TypeAlias = NDArray[np.uint8]

BLACK: Colour = (24, 24, 28)
WHITE: Colour = (250, 250, 250)
GREY: Colour = (150, 152, 158)
LIGHT: Colour = (222, 220, 212)
DARK: Colour = (70, 74, 84)
RED: Colour = (214, 60, 52)
GREEN: Colour = (58, 158, 82)
BLUE: Colour = (52, 104, 204)
YELLOW: Colour = (240, 196, 60)
ORANGE: Colour = (232, 132, 48)
BROWN: Colour = (150, 98, 52)
PURPLE: Colour = (132, 72, 168)
CYAN: Colour = (44, 160, 170)
ICE: Colour = (206, 232, 246)

_ROWS = {  # seven rows of five pixels each, every row a number whose highest of five bits is the left pixel
    "0": (14, 17, 19, 21, 25, 17, 14),
    "1": (4, 12, 4, 4, 4, 4, 14),
    "2": (14, 17, 1, 2, 4, 8, 31),
    "3": (31, 2, 4, 2, 1, 17, 14),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "5": (31, 16, 30, 1, 1, 17, 14),
    "6": (6, 8, 16, 30, 17, 17, 14),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "8": (14, 17, 17, 14, 17, 17, 14),
    "9": (14, 17, 17, 15, 1, 2, 12),
    "A": (14, 17, 17, 31, 17, 17, 17),
    "B": (30, 17, 17, 30, 17, 17, 30),
    "C": (14, 17, 16, 16, 16, 17, 14),
    "D": (30, 17, 17, 17, 17, 17, 30),
    "E": (31, 16, 16, 30, 16, 16, 31),
    "F": (31, 16, 16, 30, 16, 16, 16),
    "G": (14, 17, 16, 23, 17, 17, 15),
    "H": (17, 17, 17, 31, 17, 17, 17),
    "I": (14, 4, 4, 4, 4, 4, 14),
    "J": (7, 2, 2, 2, 2, 18, 12),
    "K": (17, 18, 20, 24, 20, 18, 17),
    "L": (16, 16, 16, 16, 16, 16, 31),
    "M": (17, 27, 21, 21, 17, 17, 17),
    "N": (17, 25, 21, 19, 17, 17, 17),
    "O": (14, 17, 17, 17, 17, 17, 14),
    "P": (30, 17, 17, 30, 16, 16, 16),
    "Q": (14, 17, 17, 17, 21, 18, 13),
    "R": (30, 17, 17, 30, 20, 18, 17),
    "S": (15, 16, 16, 14, 1, 1, 30),
    "T": (31, 4, 4, 4, 4, 4, 4),
    "U": (17, 17, 17, 17, 17, 17, 14),
    "V": (17, 17, 17, 17, 17, 10, 4),
    "W": (17, 17, 17, 21, 21, 27, 17),
    "X": (17, 17, 10, 4, 10, 17, 17),
    "Y": (17, 17, 10, 4, 4, 4, 4),
    "Z": (31, 1, 2, 4, 8, 16, 31),
    " ": (0, 0, 0, 0, 0, 0, 0),
    ".": (0, 0, 0, 0, 0, 4, 4),
    ":": (0, 4, 4, 0, 4, 4, 0),
    "-": (0, 0, 0, 14, 0, 0, 0),
    "+": (0, 4, 4, 31, 4, 4, 0),
    "*": (0, 4, 21, 14, 21, 4, 0),
    "/": (1, 1, 2, 4, 8, 16, 16),
    "=": (0, 0, 31, 0, 31, 0, 0),
    "?": (14, 17, 1, 2, 4, 0, 4),
    "!": (4, 4, 4, 4, 4, 0, 4),
    "(": (2, 4, 8, 8, 8, 4, 2),
    ")": (8, 4, 2, 2, 2, 4, 8),
    "_": (0, 0, 0, 0, 0, 0, 31),
    "#": (10, 10, 31, 10, 31, 10, 10),
    "<": (2, 4, 8, 16, 8, 4, 2),
    ">": (8, 4, 2, 1, 2, 4, 8),
}
GLYPH_HEIGHT, GLYPH_WIDTH = 7, 5


def tile(side: int, colour: Colour, border: Colour | None = None) -> Picture:
    """Return a square of one colour, with a line of one pixel around it where ``border`` is given.

    >>> tile(4, (1, 2, 3)).shape
    (4, 4, 3)
    """
    picture = canvas(side, side, colour)
    if border is not None:
        frame(picture, border)
    return picture


def canvas(height: int, width: int, colour: Colour) -> Picture:
    """Return an image of one colour, uint8 [height, width, 3]."""
    picture = np.empty((height, width, 3), np.uint8)
    picture[:] = colour
    return picture


def frame(picture: Picture, colour: Colour, thickness: int = 1) -> None:
    """Draw a line along the inside of the image's edge."""
    picture[:thickness] = picture[-thickness:] = colour
    picture[:, :thickness] = picture[:, -thickness:] = colour


def box(picture: Picture, top: float, left: float, bottom: float, right: float, colour: Colour) -> None:
    """Fill a rectangle; the corners are shares of the height and the width, in [0, 1]."""
    height, width = picture.shape[:2]
    picture[round(top * height) : round(bottom * height), round(left * width) : round(right * width)] = colour


def disc(picture: Picture, row: float, column: float, radius: float, colour: Colour) -> None:
    """Fill a disc; centre and radius are shares of the height and the width, in [0, 1]."""
    height, width = picture.shape[:2]
    down = (np.arange(height) + 0.5) / height - row
    across = (np.arange(width) + 0.5) / width - column
    picture[down[:, None] ** 2 + across[None, :] ** 2 <= radius**2] = colour


def sprite(picture: Picture, rows: Sequence[str], palette: Mapping[str, Colour]) -> None:
    """Draw a small drawing made of symbols, scaled to fill the image; symbols without a colour leave it as it is.

    >>> picture = tile(4, (0, 0, 0))
    >>> sprite(picture, ["r.", ".r"], {"r": (9, 0, 0)})
    >>> picture[:, :, 0].tolist()
    [[9, 9, 0, 0], [9, 9, 0, 0], [0, 0, 9, 9], [0, 0, 9, 9]]
    """
    height, width = picture.shape[:2]
    symbols = np.array([list(row) for row in rows])
    large = symbols[np.arange(height) * len(rows) // height][:, np.arange(width) * len(rows[0]) // width]
    for symbol, colour in palette.items():
        picture[large == symbol] = colour


def glyphs(text: str) -> NDArray[np.bool_]:
    """Return the pixels of a line of text, [7, 6 * len(text) - 1]; small letters are shown as large ones.

    Raises:
        ConfigError: The font has no such character.

    >>> for row in glyphs("1")[:3]:
    ...     print("".join(".#"[pixel] for pixel in row.tolist()))
    ..#..
    .##..
    ..#..
    """
    pixels = np.zeros((GLYPH_HEIGHT, max(0, (GLYPH_WIDTH + 1) * len(text) - 1)), np.bool_)
    for position, character in enumerate(text.upper()):
        if character not in _ROWS:
            raise ConfigError(f"the bitmap font has no {character!r}: use one of {''.join(_ROWS)!r}.")
        bits = np.array(_ROWS[character])[:, None] >> np.arange(GLYPH_WIDTH - 1, -1, -1)
        left = (GLYPH_WIDTH + 1) * position
        pixels[:, left : left + GLYPH_WIDTH] = bits & 1
    return pixels


def write(picture: Picture, text: str, colour: Colour, scale: int = 1) -> None:
    """Write a line of text into the middle of the image, every pixel of the font ``scale`` pixels wide and high.

    Raises:
        ConfigError: The text does not fit, or the font has no such character.
    """
    pixels = glyphs(text).repeat(scale, axis=0).repeat(scale, axis=1)
    spare = picture.shape[0] - pixels.shape[0], picture.shape[1] - pixels.shape[1]
    if min(spare) < 0:
        raise ConfigError(
            f"the text {text!r} needs {pixels.shape[0]} x {pixels.shape[1]} pixels at scale {scale}, "
            f"and the picture has {picture.shape[0]} x {picture.shape[1]}: write less or larger pictures."
        )
    top, left = spare[0] // 2, spare[1] // 2
    picture[top : top + pixels.shape[0], left : left + pixels.shape[1]][pixels] = colour


def stack(tiles: Sequence[Picture]) -> Picture:
    """Return tiles of one size as one read-only array [tile, side, side, 3], which ``paint`` takes."""
    stacked = np.stack(tiles)
    stacked.flags.writeable = False
    return stacked


def paint(tiles: Picture, cells: Sequence[int] | NDArray[Any], columns: int) -> Picture:
    """Return the image of a board.

    Args:
        tiles: The tiles, uint8 [tile, side, side, 3].
        cells: The number of each cell's tile, row by row.
        columns: Cells in one row.

    >>> paint(stack([tile(2, (0, 0, 0)), tile(2, (9, 9, 9))]), [0, 1, 1, 0], 2)[:, :, 0].tolist()
    [[0, 0, 9, 9], [0, 0, 9, 9], [9, 9, 0, 0], [9, 9, 0, 0]]
    """
    side = tiles.shape[1]
    grid = np.asarray(cells, np.intp).reshape(-1, columns)
    rows = grid.shape[0]
    picture = np.empty((rows, side, columns, side, 3), np.uint8)
    picture.transpose(0, 2, 1, 3, 4)[...] = tiles[grid]
    return picture.reshape(rows * side, columns * side, 3)


def person(picture: Picture, colour: Colour) -> None:
    """Draw the player: a head and a body."""
    disc(picture, 0.3, 0.5, 0.18, colour)
    disc(picture, 0.78, 0.5, 0.3, colour)
    box(picture, 0.8, 0.2, 0.88, 0.8, colour)


def flag(picture: Picture, colour: Colour) -> None:
    """Draw a flag on a dark pole."""
    box(picture, 0.12, 0.28, 0.9, 0.38, BLACK)
    box(picture, 0.12, 0.38, 0.52, 0.82, colour)


def symbol_cells(text: str, symbols: str) -> list[int]:
    r"""Return the number of each cell's symbol, row by row, line breaks left out.

    >>> symbol_cells("ab\nba", "ab")
    [0, 1, 1, 0]
    """
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    return [numbers[symbol] for symbol in text if symbol != "\n"]
