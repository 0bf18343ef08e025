"""Running mean and deviation of returns, so that a critic's targets have the same scale for any rewards."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from turngym.lazy import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

_SMALLEST_VARIANCE = 1e-2


class Moments(NamedTuple):
    """Exponential moving averages of a number and its square, and their accumulated weight.

    With weight 0 numbers are not changed. The variance is at least 0.01, as in the released
    code of MAPPO.
    """

    mean_sum: float = 0.0
    square_sum: float = 0.0
    weight: float = 0.0

    @property
    def mean(self) -> float:
        """The mean so far, corrected for the short start; 0 if nothing is known."""
        return self.mean_sum / self.weight if self.weight else 0.0

    @property
    def std(self) -> float:
        """The standard deviation so far; 1 if nothing is known."""
        if not self.weight:
            return 1.0
        return math.sqrt(max(self.square_sum / self.weight - self.mean**2, _SMALLEST_VARIANCE))

    def updated(self, values: Float[Tensor, "item"], *, decay: float) -> Moments:
        """Return the moments updated with a batch of numbers.

        >>> from torch import tensor
        >>> Moments().updated(tensor([1.0, 3.0]), decay=0.9).mean
        2.0
        """
        if not len(values):
            return self
        fresh = 1 - decay
        mean, square = float(values.mean()), float((values**2).mean())
        return Moments(
            decay * self.mean_sum + fresh * mean,
            decay * self.square_sum + fresh * square,
            decay * self.weight + fresh,
        )

    def normalise(self, values: Tensor) -> Tensor:
        """Return the numbers minus the mean, divided by the standard deviation."""
        return (values - self.mean) / self.std

    def restore(self, normalised: Tensor) -> Tensor:
        """Undo :meth:`normalise`."""
        return normalised * self.std + self.mean
