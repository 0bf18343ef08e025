"""Sampling: settings, and one random stream per turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError
from turngym.seeding import stream_seed


@dataclass(frozen=True)
class Sampling:
    """Sampling settings.

    Args:
        temperature: Divides the logits; 0 selects the most likely token.
        top_p: Keep the most likely tokens up to this total probability; 1 keeps all.
        max_new_tokens: Maximum completion length, including the end token.
        entropies: Whether completions include the entropy of each token's distribution.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    entropies: bool = False

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ConfigError(f"temperature must be 0 (greedy) or more, got {self.temperature}.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be in (0, 1], got {self.top_p}.")
        if self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens must be at least 1, got {self.max_new_tokens}.")

    @property
    def is_restricted(self) -> bool:
        """True if some tokens with positive probability are never sampled."""
        return self.temperature > 0 and self.top_p < 1


def turn_uniforms(
    run_seed: int, iteration: int, episode: int, turn: int, count: int, purpose: str = ""
) -> NDArray[np.float64]:
    """Return ``count`` uniform numbers in [0, 1) that depend only on the turn and the purpose.

    The token at position ``j`` of the completion is chosen with number ``j``, so samples depend neither on the batch of
    a turn nor on the order of turns.

    >>> bool((turn_uniforms(0, 1, 2, 3, 4)[:2] == turn_uniforms(0, 1, 2, 3, 2)).all())
    True
    """
    more = (purpose,) if purpose else ()
    key = stream_seed("sampling", run_seed, iteration, episode, turn, *more)
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def seed_of(uniforms: NDArray[np.float64]) -> int:
    """Return the seed for a turn's random numbers: the 53 bits of the first one.

    >>> seed_of(np.array([0.5, 0.1])) == 2**52
    True
    """
    return int(uniforms[0] * 2**53)
