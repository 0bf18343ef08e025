"""Record of a vector slot: state of its episode, seed, last observation, faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from gymnasium.vector import AutoresetMode

from turngym.envs.vector.backends.base import REFUSED
from turngym.envs.vector.slots.slot import Op, Result
from turngym.errors import EpisodeOver
from turngym.seeding import stream_seed

FRESH: Final = 0
"""No episode has started."""
_RUNNING: Final = 1
ENDED: Final = 2
_STILLBORN: Final = 3
"""The reset failed; the next step ends the episode."""


def fault_kind(fault: str) -> str:
    """Return the kind by which a fault is counted.

    >>> fault_kind("worker died (exit code -9)"), fault_kind("exception: ValueError: no")
    ('worker died', 'exception')
    """
    return fault.partition(":")[0].partition(" (")[0]


class Book:
    """Bookkeeping of all slots; it decides which operation comes next and reads what came back.

    Args:
        num_slots: Number of slots.
        mode: When an ended episode is followed by the next.
        empty: The observation that stands for none.
    """

    def __init__(self, num_slots: int, mode: AutoresetMode, empty: Any) -> None:
        self.status = [FRESH] * num_slots
        self.last = [empty] * num_slots
        """The last observation of each slot."""
        self.steps = 0
        self.resets = 0
        self.faults: Counter[str] = Counter()
        self._mode = mode
        self._empty = empty
        self._seeds: list[int | None] = [None] * num_slots
        self._episodes = [0] * num_slots
        self._replaced = [False] * num_slots
        self._broken = [""] * num_slots

    def reset_op(self, slot: int, seed: int | None = None, options: dict[str, Any] | None = None) -> Op:
        """Return the operation that starts the next episode.

        Without a seed the generator continues. Where a fault has destroyed the generator, the seed is derived from the
        last one given, so that every backend continues with the same episode.
        """
        if seed is not None:
            self._seeds[slot], self._episodes[slot] = seed, 0
        else:
            self._episodes[slot] += 1
            given = self._seeds[slot]
            if self._replaced[slot] and given is not None:
                seed = stream_seed("replacement", given, self._episodes[slot])
        self.status[slot] = FRESH
        return "reset", seed, options

    def step_op(self, slot: int, action: Any) -> Op:
        """Return the operation that ``action`` leads to, which may be a reset."""
        status = self.status[slot]
        if status == _RUNNING:
            return "step", action
        if status == _STILLBORN:
            return "fail", self._broken[slot]
        if status == ENDED and self._mode is AutoresetMode.NEXT_STEP:
            return self.reset_op(slot)
        when = "after its episode has ended" if status == ENDED else "before its episode has started"
        raise EpisodeOver(
            f'step() of slot {slot} {when}: call reset(), with options={{"reset_mask": mask}} for some slots only.'
        )

    def settle(self, slot: int, op: Op, result: Result) -> Result:
        """Record the result of an operation, and return it, always with an observation."""
        if result[5]:
            self.faults.update(map(fault_kind, result[5]))
        if result[0] is None:
            return self._settle_fault(slot, op, result)
        if op[0] == "step":
            self.steps += 1
            if result[2] or result[3]:
                self.status[slot] = ENDED
        else:
            self._begun(slot, op, result)
        self.last[slot] = result[0]
        return result

    def _begun(self, slot: int, op: Op, result: Result) -> None:
        self.resets += op[0] == "reset"
        self._replaced[slot] = False
        has_ended = op[0] == "restore" and result[4].get("success", -1) != -1
        self.status[slot] = ENDED if has_ended else _RUNNING

    def _settle_fault(self, slot: int, op: Op, result: Result) -> Result:
        if result is REFUSED:
            return self._settle_refusal(slot)
        self.steps += op[0] == "step"
        self.resets += op[0] == "reset"
        self._replaced[slot] = True
        self._broken[slot] = result[4]["fault"]
        self.status[slot] = _STILLBORN if op[0] == "reset" else ENDED
        self.last[slot] = self._empty
        return (self._empty, *result[1:])

    def _settle_refusal(self, slot: int) -> Result:
        self.drop([slot])
        return (self._empty, *REFUSED[1:])

    def drop(self, slots: Sequence[int]) -> None:
        """Mark the episodes of some slots as unknown: they have to be reset."""
        for slot in slots:
            self.status[slot] = FRESH
            self.last[slot] = self._empty
