"""What a generation backend is asked for and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.agents.models.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """What a backend sampled for a prompt.

    Args:
        ids: Token ids.
        logprobs: The sampler's log-probability of each, temperature included.
        entropies: Entropies of their distributions, if asked for.
        version: Number of the policy that sampled them; -1 if unknown.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...] = ()
    version: int = -1


Generate: TypeAlias = Callable[[Sequence[Sequence[int]], Sequence[NDArray[np.float64]], Sampling], list[Completion]]
"""A backend's core call: prompts, random numbers for each, and settings to completions."""
