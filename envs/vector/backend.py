"""What a vector asks of a backend: run operations on slots, in whatever way it likes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gymnasium.error import ClosedEnvironmentError

from turngym.envs.vector.maker import Maker
from turngym.envs.vector.slot import Op
from turngym.errors import ConfigError
from turngym.registry import Registry


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Options that a backend obeys where it can.

    Args:
        num_workers: Number of workers, at least 1; None lets the backend choose.
        step_timeout_seconds: A step that takes longer is a fault; None waits for ever. ``sync`` cannot interrupt.
        reset_timeout_seconds: The same for a reset, which includes making the environment.
        memory_limit_mib: Memory that each worker may allocate, in MiB; None for no limit.
    """

    num_workers: int | None = None
    step_timeout_seconds: float | None = 60.0
    reset_timeout_seconds: float | None = 120.0
    memory_limit_mib: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_workers", "step_timeout_seconds", "reset_timeout_seconds", "memory_limit_mib"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be greater than 0, got {value!r}. Leave it out for the default.")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that is for the caller, kept until the answer is fetched."""

    error: BaseException


class Backend(ABC):
    """Runs operations of :class:`~turngym.envs.vector.slot.Slot`, at most one per slot at a time.

    Args:
        makers: One per slot.
        options: Limits.
    """

    workers_replaced: int = 0
    """Workers that were killed or died and were replaced."""
    abandoned: int = 0
    """Environments that hang and cannot be ended, left behind."""

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        self.makers = makers
        self.options = options
        self.closed = False
        self.done: dict[int, Any] = {}
        """Answers that nobody has fetched yet, by slot, in the order they came."""

    @abstractmethod
    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Start one operation on each of the slots."""

    @abstractmethod
    def pump(self, timeout_seconds: float | None) -> None:
        """Wait until at least one more answer is in ``done``, or the time is over; None waits for ever."""

    @abstractmethod
    def shut_down(self) -> None:
        """Close every environment and end every worker."""

    def run(self, slots: Sequence[int], ops: Sequence[Op]) -> list[Any]:
        """Run one operation on each of the slots and return the answers in that order."""
        self.require_open()
        try:
            self.submit(slots, ops)
            while not all(slot in self.done for slot in slots):
                self.pump(None)
        except KeyboardInterrupt:
            self.close()  # answers that are still under way would be taken for those of the next call
            raise
        return [unwrap(answer) for answer in [self.done.pop(slot) for slot in slots]]

    def collect(self, min_ready: int, timeout_seconds: float | None) -> list[tuple[int, Any]]:
        """Return the answers that are ready: at least ``min_ready``, unless the time is over."""
        self.require_open()
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while len(self.done) < min_ready:
            left = None if deadline is None else deadline - time.monotonic()
            self.pump(None if left is None else max(0.0, left))
            if left is not None and left <= 0:
                break
        for slot, answer in self.done.items():
            if isinstance(answer, Failure):
                del self.done[slot]  # the other answers stay for the next call
                raise SlotFailure(slot, answer.error)
        ready, self.done = self.done, {}
        return list(ready.items())

    def require_open(self) -> None:
        """Raise if the vector was closed."""
        if self.closed:
            raise ClosedEnvironmentError("this vector was closed: make a new one.")

    def close(self) -> None:
        """End everything; the second time does nothing."""
        if not self.closed:
            self.closed = True
            self.shut_down()


class SlotFailure(Exception):
    """An operation of one slot was refused; the vector raises the error itself.

    Args:
        slot: The slot.
        error: Why.
    """

    def __init__(self, slot: int, error: BaseException) -> None:
        super().__init__(slot, error)
        self.slot = slot
        self.error = error


def unwrap(answer: Any) -> Any:
    """Return an answer, or raise the exception that it holds."""
    if isinstance(answer, Failure):
        raise answer.error
    return answer


VECTOR_BACKENDS: Registry[type[Backend]] = Registry("vector backend", "turngym.envs.vector")
