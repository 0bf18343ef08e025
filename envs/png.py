"""PNG encoding with the standard library alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(image: NDArray[np.uint8]) -> bytes:
    r"""Encode an image as PNG, lossless with 8 bits per channel. Source: PNG specification (W3C, third edition).

    Args:
        image: Red, green and blue, [H, W, 3].

    Raises:
        ValueError: Its shape or dtype is wrong.

    >>> png(np.zeros((2, 3, 3), np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise ValueError(f"an image is a uint8 array [H, W, 3], got {image.dtype} {list(image.shape)}.")
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row starts with its filter type: 0 is none
    rows[:, 1:] = image.reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits, colours, no interlace
    body = zlib.compress(rows.tobytes(), 6)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def png_size(picture: bytes) -> tuple[int, int]:
    """Return width and height of a PNG file in pixels.

    Raises:
        ValueError: It is not a PNG file.

    >>> png_size(png(np.zeros((2, 3, 3), np.uint8)))
    (3, 2)
    """
    if picture[:8] != _SIGNATURE or len(picture) < 24:
        raise ValueError("an image is not a PNG file.")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
