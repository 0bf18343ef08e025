"""Screenshots as arrays, with the numbers of the elements drawn over them."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from turngym.envs.web.driver.page import Node
from turngym.errors import missing_extra

_COLORS = ((200, 30, 30), (20, 110, 20), (30, 60, 200), (150, 60, 150), (160, 90, 0))


def decode(png: bytes) -> NDArray[np.uint8]:
    """Return a PNG as an array, uint8 [H, W, 3].

    Raises:
        MissingExtra: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise missing_extra("a screenshot", "pillow", "web") from error
    return np.array(Image.open(io.BytesIO(png)).convert("RGB"))


def with_marks(picture: NDArray[np.uint8], nodes: Iterable[Node]) -> NDArray[np.uint8]:
    """Return an image with a frame around every element that has a number, and the number at its corner.

    Args:
        picture: uint8 [H, W, 3].
        nodes: The elements, in pixels of the picture.
    """
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    height, width = picture.shape[:2]
    for node in nodes:
        left, top, across, down = node.at
        if not node.id or left >= width or top >= height or left + across <= 0 or top + down <= 0:
            continue
        color = _COLORS[node.id % len(_COLORS)]
        draw.rectangle((left, top, left + max(across, 2) - 1, top + max(down, 2) - 1), outline=color)
        text = str(node.id)
        x, y = max(0.0, min(left, width - 7 * len(text))), max(0.0, top - 10)
        draw.rectangle((x, y, x + 6 * len(text) + 1, y + 10), fill=color)
        draw.text((x + 1, y - 1), text, fill=(255, 255, 255))
    return np.array(image)
