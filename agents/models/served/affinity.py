"""Which server has computed the beginning of a prompt."""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise

BLOCK = 128
"""Tokens of a block; servers keep the keys and values of whole blocks."""
_MOST_BLOCKS = 200_000


class Affinity:
    """Remembers by whom the blocks of prompts were computed last, the longest unused ones being forgotten.

    Args:
        most: Most blocks.

    >>> affinity = Affinity()
    >>> affinity.note(range(300), 1)
    >>> affinity.find(range(256)), affinity.find(range(100)), affinity.find(range(5, 300))
    (1, None, None)
    """

    def __init__(self, most: int = _MOST_BLOCKS) -> None:
        self.most = most
        self._owners: OrderedDict[bytes, int] = OrderedDict()

    def find(self, prompt: Sequence[int]) -> int | None:
        """Return the number of the server that knows most of a prompt; None if none knows a block of it."""
        found = None
        for name in _blocks(prompt):
            if name not in self._owners:
                break
            found = self._owners[name]
        return found

    def note(self, prompt: Sequence[int], server: int) -> None:
        """Remember that a server computed a prompt."""
        for name in _blocks(prompt):
            self._owners[name] = server
            self._owners.move_to_end(name)
        while len(self._owners) > self.most:
            self._owners.popitem(last=False)

    def clear(self) -> None:
        """Forget everything, as servers do when their weights change."""
        self._owners.clear()


def _blocks(prompt: Sequence[int]) -> Iterator[bytes]:
    """Yield a name for each whole block of a prompt with all before it."""
    chain = hashlib.blake2b(digest_size=16)
    for start, end in pairwise(range(0, len(prompt) + 1, BLOCK)):
        chain.update(array("q", prompt[start:end]).tobytes())
        yield chain.digest()
