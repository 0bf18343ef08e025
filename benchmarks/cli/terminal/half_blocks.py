"""Images in a terminal: every character shows two pixels, one above the other."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

_UPPER_HALF = "\N{UPPER HALF BLOCK}"


def shrunk(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Return an image that fits, each pixel the mean of a square of the original.

    Args:
        picture: uint8 [H, W, 3].
        width: Maximum pixels in a row.
        height: Maximum number of rows.

    Returns:
        uint8 [h, w, 3]; the picture itself if it fits already.

    >>> shrunk(np.array([[[0, 0, 0], [100, 0, 0]]] * 2, np.uint8), 1, 1).tolist()
    [[[50, 0, 0]]]
    """
    side = max(1, math.ceil(picture.shape[1] / width), math.ceil(picture.shape[0] / height))
    if side == 1:
        return picture
    below, beside = -picture.shape[0] % side, -picture.shape[1] % side
    whole = np.pad(picture, ((0, below), (0, beside), (0, 0)), mode="edge")
    squares = whole.reshape(whole.shape[0] // side, side, whole.shape[1] // side, side, 3)
    return np.asarray(squares.mean(axis=(1, 3)).round(), np.uint8)


def half_blocks(picture: NDArray[np.uint8], width: int = 64, height: int = 64) -> Text:
    """Return an image as coloured text, one line for two rows of pixels.

    Args:
        picture: uint8 [H, W, 3].
        width: Maximum characters in a line.
        height: Maximum pixels from top to bottom, twice the lines.
    """
    small = shrunk(picture, width, height)
    if len(small) % 2:
        small = np.concatenate([small, np.zeros_like(small[:1])])
    text = Text()
    for upper, lower in zip(small[0::2].tolist(), small[1::2].tolist(), strict=True):
        columns = zip(upper, lower, strict=True)
        for (top, bottom), run in itertools.groupby(columns):  # equal neighbours share one escape sequence
            text.append(_UPPER_HALF * len(list(run)), style=f"rgb({_rgb(top)}) on rgb({_rgb(bottom)})")
        text.append("\n")
    return text


def _rgb(pixel: list[int]) -> str:
    return ",".join(map(str, pixel))
