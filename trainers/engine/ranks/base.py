"""Interface of ranks, and its implementation for a single process.

Every method is collective: all ranks call the same ones in the same order, on every code path. Code that may fail on a
single rank runs inside :meth:`Ranks.exchange`, :meth:`Ranks.agree` or :meth:`Ranks.on_first`, which raise the same
error on all ranks, so that no rank waits for a failed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor

T = TypeVar("T")


class Ranks(ABC):
    """The processes of a run, from the perspective of one of them.

    Args:
        rank: Number of this process, from 0.
        size: Number of processes.
        local_rank: Number of this process on its machine, from 0.
    """

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.seconds = 0.0
        """Communication time of this process so far in seconds, including waiting."""

    @property
    def is_first(self) -> bool:
        """True if this process writes the run folder, shows progress and logs."""
        return self.rank == 0

    # What an implementation must have.

    @abstractmethod
    def exchange(self, work: Callable[[], T]) -> list[T]:
        """Do work on every rank, and return the results of all, in the order of ranks.

        Args:
            work: Returns a JSON-compatible value.

        Raises:
            Exception: Exception of the work here, or of the first failing rank.
        """

    @abstractmethod
    def on_first(self, work: Callable[[], T]) -> T:
        """Do work on rank 0, and return its result on all ranks; the others wait without a timeout.

        Args:
            work: Returns a JSON-compatible value.

        Raises:
            Exception: Exception of the work on rank 0.
        """

    @abstractmethod
    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all ranks; number and shapes must be equal on all ranks.

        The results are bit-identical on all ranks.
        """

    @abstractmethod
    def broadcast(self, tensor: Tensor) -> None:
        """Replace a tensor by that of rank 0; shapes must be equal."""

    @abstractmethod
    def concatenated(self, values: Tensor) -> Tensor:
        """Return the concatenated numbers of all ranks in float64, in the order of ranks; lengths may differ."""

    # What follows from it.

    def agree(self, work: Callable[[], T]) -> T:
        """Do work on every rank, and return this rank's result once all have succeeded.

        Args:
            work: Returns anything.

        Raises:
            Exception: Exception of the work here, or of the first failing rank.
        """
        found: list[T] = []
        self.exchange(lambda: found.append(work()))
        return found[0]

    def gathered(self, value: T) -> list[T]:
        """Return a JSON-compatible value of every rank, in the order of ranks."""
        return self.exchange(lambda: value)

    def from_first(self, value: T) -> T:
        """Return the value of rank 0; others are ignored."""
        return self.exchange(lambda: value)[0]

    def any(self, flag: bool) -> bool:
        """Return True if the flag is set on any rank."""
        return any(self.gathered(flag))

    def maximum(self, value: float) -> float:
        """Return the maximum over ranks."""
        return max(self.gathered(value))

    def sum_numbers(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return the sums of named numbers over ranks; missing ones count as 0."""
        total: dict[str, float] = {}
        for each in self.gathered(dict(numbers)):
            for name, value in each.items():
                total[name] = total.get(name, 0.0) + value
        return total

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.exchange(lambda: None)

    def require_equal(self, what: str, value: Callable[[], Any]) -> None:
        """Raise unless all ranks have the same value; not computed with a single rank.

        Args:
            what: Name for the message, such as ``"episodes"``.
            value: Returns a JSON-compatible value.

        Raises:
            ConfigError: The ranks' values differ.
        """
        if self.size > 1 and any(each != found[0] for found in [self.exchange(value)] for each in found):
            raise ConfigError(
                f"the {what} differ between the {self.size} ranks: every rank must compute the same from the same "
                "episodes. Look for randomness without the run's seed, such as a judge behind a server."
            )


class SingleProcess(Ranks):
    """A single process, without communication.

    >>> SingleProcess().exchange(lambda: 3), SingleProcess().sum_numbers({"a": 1.0})
    ([3], {'a': 1.0})
    """

    def exchange(self, work: Callable[[], T]) -> list[T]:
        """Do the work."""
        return [work()]

    def on_first(self, work: Callable[[], T]) -> T:
        """Do the work."""
        return work()

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Leave the tensors as they are."""

    def broadcast(self, tensor: Tensor) -> None:
        """Leave the tensor as it is."""

    def concatenated(self, values: Tensor) -> Tensor:
        """Return the numbers in float64."""
        return values.double()

    def sum_numbers(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers."""
        return dict(numbers)


SINGLE: Ranks = SingleProcess()
