"""Story files of the Z-machine: whether a file is one, and whole, before an interpreter in C sees it.

Source: The Z-Machine Standards Document 1.1, section 11 (the header).
"""

from __future__ import annotations

from pathlib import Path

_HEADER = 64
_VERSIONS = (1, 2, 3, 4, 5, 6, 7, 8)
_SCALE = {4: 4, 5: 4, 6: 8, 7: 8, 8: 8}


class Damaged(ValueError):
    """A file is not a story of the Z-machine, or not all of one."""


def read_story(path: Path) -> bytes:
    """Return the content of a story file whose header, length and sum fit.

    Raises:
        OSError: It cannot be read.
        Damaged: It is not a story, or damaged; the message says how one sees it.
    """
    story = path.read_bytes()
    if len(story) < _HEADER or story[0] not in _VERSIONS:
        raise Damaged("it does not start like a story of the Z-machine")
    length = _word(story, 0x1A) * _SCALE.get(story[0], 2)
    if length == 0:
        return story  # the oldest stories do not tell their length
    if len(story) < length:
        raise Damaged(f"it should have {length} bytes and has {len(story)}")
    if sum(story[_HEADER:length]) % 0x10000 != _word(story, 0x1C):
        raise Damaged("its sum is not that of its header")
    return story


def _word(story: bytes, at: int) -> int:
    return int.from_bytes(story[at : at + 2], "big")
