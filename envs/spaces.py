"""The space of unbounded Unicode text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from gymnasium.vector.utils.space_utils import batch_differing_spaces

_ALPHABET = "abcdefghijklmnopqrstuvwxyz ABC 0123456789 .,;:!?<>/[](){}'\"\\\n\té漢字🙂"
_SAMPLE_LIMIT = 64


class Unicode(Space[str]):
    """Every ``str`` of any length.

    Gymnasium's own ``Text`` space is bounded in length and alphabet, which the output of a language model is not.
    Batches are tuples of ``str``.

    >>> "any text at all, 漢字 included" in Unicode()
    True
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """True if an element has a fixed-size numeric form; text has none."""
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Return a random text of at most 64 characters, line breaks and non-ASCII included."""
        if mask is not None or probability is not None:
            raise ValueError("Unicode.sample takes no mask and no probability: every text belongs to the space.")
        length = int(self.np_random.integers(_SAMPLE_LIMIT + 1))
        return "".join(_ALPHABET[i] for i in self.np_random.integers(len(_ALPHABET), size=length))

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a ``str``."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode)

    def __hash__(self) -> int:
        return hash(Unicode)

    def __repr__(self) -> str:
        return "Unicode()"


class UnicodeTuple(Space[tuple[str, ...]]):
    """A tuple of ``count`` texts: the batch form of :class:`Unicode`.

    >>> ("a", "b") in UnicodeTuple(2)
    True
    """

    def __init__(self, count: int, seed: int | np.random.Generator | None = None) -> None:
        self.count = count
        self._single = Unicode()
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """True if an element has a fixed-size numeric form; text has none."""
        return False

    def seed(self, seed: Any = None) -> Any:
        """Seed the generator of the samples."""
        seeded = super().seed(seed)
        self._single = Unicode(self.np_random)
        return seeded

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> tuple[str, ...]:
        """Return ``count`` random texts."""
        return tuple(self._single.sample(mask, probability) for _ in range(self.count))

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a tuple of ``count`` texts."""
        return isinstance(x, tuple) and len(x) == self.count and all(isinstance(text, str) for text in x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeTuple) and other.count == self.count

    def __hash__(self) -> int:
        return hash((UnicodeTuple, self.count))

    def __repr__(self) -> str:
        return f"UnicodeTuple({self.count})"


@batch_space.register(Unicode)
def _batch_unicode(space: Unicode, n: int = 1) -> UnicodeTuple:
    return UnicodeTuple(n)


@batch_differing_spaces.register(Unicode)
def _batch_differing(spaces: list[Unicode]) -> UnicodeTuple:  # type: ignore[misc]  # dispatched on the first space
    return UnicodeTuple(len(spaces))


@create_empty_array.register(Unicode)
def _empty_unicode(space: Unicode, n: int = 1, fn: Any = np.zeros) -> tuple[str, ...]:
    return ("",) * n


@concatenate.register(Unicode)
def _concatenate_unicode(space: Unicode, items: Iterable[str], out: Any) -> tuple[str, ...]:
    return tuple(items)


@iterate.register(UnicodeTuple)
def _iterate_unicode(space: UnicodeTuple, items: Iterable[str]) -> Iterator[str]:  # type: ignore[misc]
    return iter(items)
