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
    """Sampled token ids, the sampler's log-probabilities, temperature included, and entropies if asked for."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...] = ()


Generate: TypeAlias = Callable[[Sequence[Sequence[int]], Sequence[NDArray[np.float64]], Sampling], list[Completion]]
"""A backend's core call: prompts, random numbers for each, and settings to completions."""
