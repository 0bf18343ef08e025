"""Global generators lent to foreign code: each user of ``random`` and ``numpy.random`` gets a state of its own.

Code that draws from the global generators disturbs whoever else does. Here it runs between a swap in and a swap out
of a state that belongs to one object, under one lock, so that two such objects never see each other's draws and the
caller's generators come out as they went in. What this cannot contain: a thread outside of any
:class:`GlobalRandom` that draws from the global generators at that very moment.
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
        """Start both generators anew."""
        self._python = random.Random(seed).getstate()
        self._numpy = np.random.MT19937(abs(seed))
        self._gauss: dict[str, Any] = {}

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Run a block with this state in the global generators; the caller's state is back after it, errors or not."""
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
