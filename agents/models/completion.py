"""Requests and results of generation backends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.agents.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion sampled by a backend.

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


class BackgroundSampler(Protocol):
    """A backend whose completions do not wait for one another; safe to use from several threads."""

    def follow(self) -> None:
        """Take over the policy's weights, and return when they sample.

        Every completion is of one version: those that have started end with the weights that they started with.
        """
        ...

    def submit(
        self,
        prompt: Sequence[int],
        uniforms: NDArray[np.float64],
        sampling: Sampling,
        given_up: threading.Event,
    ) -> Future[Completion]:
        """Start to sample a completion, and return at once.

        Args:
            prompt: Token ids.
            uniforms: Random numbers, which fix what is sampled.
            sampling: Temperature, top-p, length limit.
            given_up: Set once the completion is not wanted any more.
        """
        ...
