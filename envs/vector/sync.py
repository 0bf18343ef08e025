"""Runs every slot in this process, one after the other: the cheapest backend for pure-Python games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turngym.envs.vector.backend import VECTOR_BACKENDS, Backend, BackendOptions, Failure
from turngym.envs.vector.maker import Maker
from turngym.envs.vector.slot import Op, Slot
from turngym.errors import ConfigError


@VECTOR_BACKENDS.register("sync")
class SyncBackend(Backend):
    """Runs an operation when it is submitted. Survives an exception; cannot interrupt a hang."""

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        super().__init__(makers, options)
        if options.memory_limit_mib is not None:
            raise ConfigError('memory_limit_mib would limit this very process. Pass backend="process".')
        self._slots = [Slot(maker) for maker in makers]

    def run(self, slots: Sequence[int], ops: Sequence[Op]) -> list[Any]:
        """Run the operations in order."""
        if self.closed:
            self.require_open()
        every = self._slots
        return [every[slot].run(op) for slot, op in zip(slots, ops, strict=True)]

    def submit(self, slots: Sequence[int], ops: Sequence[Op]) -> None:
        """Run the operations at once and keep the answers."""
        self.require_open()
        for slot, op in zip(slots, ops, strict=True):
            try:
                self.done[slot] = self._slots[slot].run(op)
            except Exception as error:  # kept, and raised where the answer is fetched
                self.done[slot] = Failure(error)

    def pump(self, timeout_seconds: float | None) -> None:
        """Do nothing: every answer is there already."""

    def shut_down(self) -> None:
        """Close the environments."""
        for slot in self._slots:
            slot.close()
