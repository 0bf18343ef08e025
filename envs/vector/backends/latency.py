"""Latencies of operations: a fixed-size histogram with quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_SHORTEST = 1e-7
_PER_DECADE = 48
_DECADES = 12
_NUM_BINS = _PER_DECADE * _DECADES
_LONGEST_BUFFER = 8192
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class Histogram:
    """Durations in bins of equal ratio, 48 to a decade, from 100 ns to 28 hours.

    It always needs five kilobytes. A quantile is right to 2.5 %, the count, the sum and the longest
    duration are exact. Shorter and longer durations than the bins reach fall into the first and the last bin.

    >>> histogram = Histogram()
    >>> histogram.add([0.001] * 98 + [0.3, 5.0])
    >>> round(histogram.quantile(0.5), 4), round(histogram.quantile(0.99), 1), histogram.longest
    (0.001, 0.3, 5.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        """The sum of all durations, in seconds."""
        self.longest = 0.0
        self._bins = np.zeros(_NUM_BINS, dtype=np.int64)

    def add(self, seconds: Sequence[float]) -> None:
        """Count durations, in seconds."""
        if not seconds:
            return
        values = np.asarray(seconds, dtype=np.float64)
        places = np.floor(np.log10(np.maximum(values, _SHORTEST) / _SHORTEST) * _PER_DECADE).astype(np.int64)
        self._bins += np.bincount(np.minimum(places, _NUM_BINS - 1), minlength=_NUM_BINS)
        self.count += len(values)
        self.total += float(values.sum())
        self.longest = max(self.longest, float(values.max()))

    def quantile(self, share: float) -> float:
        """Return the duration that ``share`` of all do not exceed, 0 if nothing was counted.

        Args:
            share: In [0, 1]; the smallest counted duration whose rank reaches this share is returned.
        """
        if not self.count:
            return 0.0
        rank = max(1, int(np.ceil(share * self.count)))
        place = int(np.searchsorted(np.cumsum(self._bins), rank))
        middle = _SHORTEST * 10 ** ((place + 0.5) / _PER_DECADE)
        return float(min(middle, self.longest))

    def summary(self) -> dict[str, float]:
        """Return the count, the quantiles p50, p90 and p99, and the longest duration, in seconds."""
        quantiles = {name: self.quantile(share) for name, share in _QUANTILES.items()}
        return {"count": self.count, **quantiles, "max": self.longest}


class Latencies:
    """The latencies of steps and of resets; durations are collected in lists and counted many at a time.

    Counting one by one would cost a microsecond a step. Appending to ``fresh_steps`` costs some 30 ns; callers that do
    so must call :meth:`settle` now and then.
    """

    def __init__(self) -> None:
        self.fresh_steps: list[float] = []
        """Durations of steps that are not in the histogram yet, in seconds."""
        self._fresh_resets: list[float] = []
        self._steps = Histogram()
        self._resets = Histogram()

    def took(self, kind: str, seconds: float) -> None:
        """Count one operation; only steps and resets count.

        Args:
            kind: The operation's name.
            seconds: Duration.
        """
        if kind == "step":
            self.fresh_steps.append(seconds)
            self.settle()
        elif kind == "reset":
            self._fresh_resets.append(seconds)
            self.settle()

    def absorb(self, durations: dict[str, list[float]]) -> None:
        """Count operations that took place elsewhere, by kind as :meth:`drain` returns them."""
        if durations:
            self.fresh_steps += durations["step"]
            self._fresh_resets += durations["reset"]
            self.settle()

    def drain(self) -> dict[str, list[float]]:
        """Return and remove the durations that are not in the histograms yet."""
        durations = {"step": self.fresh_steps[:], "reset": self._fresh_resets[:]}
        self.fresh_steps.clear()
        self._fresh_resets.clear()
        return durations

    def settle(self, longest_buffer: int = _LONGEST_BUFFER) -> None:
        """Move durations into the histograms if more than a given number are waiting."""
        if len(self.fresh_steps) > longest_buffer:
            self._steps.add(self.fresh_steps)
            self.fresh_steps.clear()
        if len(self._fresh_resets) > longest_buffer:
            self._resets.add(self._fresh_resets)
            self._fresh_resets.clear()

    @property
    def busy_seconds(self) -> float:
        """The time that all steps and resets took together."""
        self.settle(0)
        return self._steps.total + self._resets.total

    def mean_seconds(self) -> float:
        """Return the mean time of all steps and resets, 0 if there were none."""
        busy = self.busy_seconds
        return busy / max(1, self._steps.count + self._resets.count)

    def summary(self) -> dict[str, dict[str, float]]:
        """Return the summaries of both histograms."""
        self.settle(0)
        return {"step_seconds": self._steps.summary(), "reset_seconds": self._resets.summary()}
