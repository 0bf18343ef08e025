"""Isolates third-party code that uses ``random`` and ``numpy.random``: each user gets its own global state.

Code that samples from the global generators disturbs all other users of them. Here a state that belongs to one object
is swapped in before such code runs and swapped out afterwards, under one lock, so that two such objects never affect
each other and the caller's generators are unchanged. The one exception: a thread outside any :class:`GlobalRandom` that
samples from the global generators at the same moment.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.random import mtrand

_LOCK = threading.RLock()


class GlobalRandom:
    """A state of the global generators of ``random`` and ``numpy.random`` that belongs to its holder.

    Args:
        seed: Seeds both generators, any whole number.

    >>> mine = GlobalRandom(1)
    >>> with mine.lent():
    ...     first = random.random()
    >>> mine.seed(1)
    >>> with mine.lent():
    ...     random.random() == first
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Reseed both generators."""
        self._python = random.Random(seed).getstate()
        self._numpy = np.random.MT19937(abs(seed))
        self._gauss: dict[str, Any] = {}

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Run a block with this state in the global generators; the caller's state is always restored afterwards."""
        with _LOCK:
            python, numpy, gauss = random.getstate(), mtrand.get_bit_generator(), _second_normal()
            random.setstate(self._python)
            _lend(self._numpy, self._gauss)
            try:
                yield
            finally:
                self._python, self._gauss = random.getstate(), _second_normal()
                random.setstate(python)
                _lend(numpy, gauss)


def _second_normal() -> dict[str, Any]:
    """Return NumPy's global state if it holds back the second of a pair of normal numbers, else nothing.

    Exchanging the bit generator drops that number, and copying the whole state each time would cost far more.
    """
    state: dict[str, Any] = np.random.get_state(legacy=False)
    return state if state["has_gauss"] else {}


def _lend(generator: np.random.BitGenerator, gauss: dict[str, Any]) -> None:
    mtrand.set_bit_generator(generator)
    if gauss:
        np.random.set_state(gauss)
