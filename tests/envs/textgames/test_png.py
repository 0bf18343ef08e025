"""Pictures as PNG: what another program reads back is what was written."""

import io
import struct
import zlib

import numpy as np
import pytest

from turngym.envs.png import png
from turngym.seeding import stream


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 5, 3), (96, 64, 3)])
def test_another_library_reads_the_same_picture_back(shape: tuple[int, int, int]) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="needs the package pillow")
    picture = stream("png", *shape).integers(0, 256, shape, dtype=np.uint8)
    with image_module.open(io.BytesIO(png(picture))) as found:
        found.load()
        assert (found.format, found.mode) == ("PNG", "RGB")
        assert (np.asarray(found) == picture).all()


def test_the_file_is_made_of_chunks_with_true_checksums() -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    data, kinds, rows = png(picture)[8:], [], b""
    while data:
        length = struct.unpack(">I", data[:4])[0]
        kind, content = data[4:8], data[8 : 8 + length]
        assert struct.unpack(">I", data[8 + length : 12 + length])[0] == zlib.crc32(kind + content)
        kinds.append(kind)
        rows += content if kind == b"IDAT" else b""
        data = data[12 + length :]
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]
    # each row is a 0, which means no filter, and then its bytes as they are
    assert zlib.decompress(rows) == b"\0" + picture[0].tobytes() + b"\0" + picture[1].tobytes()


def test_a_picture_that_is_a_view_of_another_is_written_as_it_looks() -> None:
    picture = stream("png view").integers(0, 256, (6, 8, 3), dtype=np.uint8)
    assert png(picture[::2, ::-1]) == png(picture[::2, ::-1].copy())


@pytest.mark.parametrize("picture", [np.zeros((2, 2), np.uint8), np.zeros((2, 2, 4), np.uint8), np.zeros((2, 2, 3))])
def test_what_is_no_picture_is_refused(picture: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> None:
    with pytest.raises(ValueError, match=r"an image is a uint8 array \[H, W, 3\], got "):
        png(picture)
