"""Runs every slot in this process, one after the other: the cheapest backend for pure-Python games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from turngym.envs.vector.backends.base import VECTOR_BACKENDS, Backend, BackendOptions, Failure
from turngym.envs.vector.backends.worker import for_caller
from turngym.envs.vector.slots.boundary import is_for_program
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Op, Slot
from turngym.errors import ConfigError


class PlainSlot(Slot):
    """A slot that never moves, so that the start of its episode need not be recorded."""

    __slots__ = ()
    is_journaled = False


@VECTOR_BACKENDS.register("sync")
class SyncBackend(Backend):
    """Runs an operation when it is submitted. Survives an exception; cannot interrupt a hang."""

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        if options.memory_limit_mib is not None:
            raise ConfigError('memory_limit_mib would limit this very process. Pass backend="process".')
        self._slots = [PlainSlot(maker) for maker in makers]

    def stream(self, slots: Sequence[int], ops: Sequence[Op]) -> Iterator[Any]:
        """Run an operation when its answer is asked for.

        A step's time includes what the caller does with the answer before: reading the clock once is half the cost.
        """
        self.require_open()
        every, steps = self._slots, self.latencies.fresh_steps
        self.latencies.settle()
        last = perf_counter()
        for slot, op in zip(slots, ops, strict=True):
            if op[0] == "step":
                answer = every[slot].step(op[1])
                now = perf_counter()
                steps.append(now - last)
                last = now
                yield answer
            else:
                try:
                    answer = every[slot].run(op)
                except BaseException as error:  # kept, and raised when all have been run
                    if is_for_program(error):
                        raise
                    answer = self.refuse(for_caller(error))
                now = perf_counter()
                self.latencies.took(op[0], now - last)
                last = now
                yield answer

    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Run the operations at once and keep the answers."""
        for slot, answer in zip(slots, self.stream(slots, ops), strict=True):
            self.done[slot] = answer
            if self.refusal is not None:
                self.done[slot], self.refusal = Failure(self.refusal), None

    def report(self) -> dict[str, Any]:
        """Return the same as every backend; here the caller waits for whatever is done."""
        return super().report() | {"waiting_seconds": self.latencies.busy_seconds}

    def pump(self, timeout_seconds: float | None) -> None:
        """Do nothing: every answer is there already."""

    def shut_down(self) -> None:
        """Close the environments."""
        for slot in self._slots:
            slot.close()
