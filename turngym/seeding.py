"""Named random streams: every random choice has its own generator, derived from what it is for.

Nothing in turngym touches a global generator. A stream is a function of its key alone, so the order in which
episodes finish, the number of workers and a resume after a kill change no random number.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream_seed(*key: int | str) -> int:
    """Return a 63-bit seed that depends on the whole key and on nothing else.

    >>> stream_seed("episode", 0, 1) == stream_seed("episode", 0, 1) != stream_seed("episode", 1, 0)
    True
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stream(*key: int | str) -> np.random.Generator:
    """Return the generator of the stream named by ``key``.

    >>> bool(stream("a", 1).random() == stream("a", 1).random())
    True
    """
    return np.random.Generator(np.random.Philox(stream_seed(*key)))


def restart(generator: np.random.Generator, *key: int | str) -> np.random.Generator:
    """Set a generator to the start of the stream named by ``key``, and return it.

    Several times faster than a new generator, and its state is plain numbers, which JSON can hold.

    Args:
        generator: One whose bit generator is a ``PCG64``, such as those of ``numpy.random.default_rng``.
        key: As for :func:`stream`; the stream is another one than there.

    >>> generator = np.random.default_rng(0)
    >>> bool(restart(generator, "a", 1).random() == restart(generator, "a", 1).random())
    True
    """
    text = "\x1f".join([f"{type(part).__name__}:{part}" for part in key])
    digest = hashlib.blake2b(text.encode(), digest_size=32).digest()
    state = {"state": int.from_bytes(digest[:16], "big"), "inc": int.from_bytes(digest[16:], "big") | 1}
    generator.bit_generator.state = {"bit_generator": "PCG64", "state": state, "has_uint32": 0, "uinteger": 0}
    return generator
