"""Runs the slots on one event loop: for environments that wait in coroutines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from turngym.envs.vector.backends.base import VECTOR_BACKENDS, BackendOptions
from turngym.envs.vector.backends.lanes.aio import AsyncSlot
from turngym.envs.vector.backends.lanes.lanes import Gate, Lane
from turngym.envs.vector.backends.lanes.loops import GRACE_SECONDS, LoopLane, LoopThread
from turngym.envs.vector.backends.thread import LaneWorker, ThreadBackend
from turngym.envs.vector.slots.maker import Maker

_SIGN_SECONDS = 0.05


@VECTOR_BACKENDS.register("asyncio")
class AsyncioBackend(ThreadBackend):
    """Runs environments with coroutines on one event loop; survives an exception and a hang.

    See :class:`~turngym.envs.vector.backends.lanes.aio.AsyncEnv` for what such an environment offers. All others run in
    threads, as with the backend ``thread``, so that they never hold up the loop. A coroutine that exceeds its limit is
    cancelled, and abandoned if it does not end then. One that blocks the loop itself is abandoned together with the
    loop: the other slots are rebuilt from their journals on a fresh one. ``num_workers`` limits the threads only.
    """

    def __init__(self, makers: Sequence[Maker], options: BackendOptions) -> None:
        self._homes = [LoopThread()]
        self._cancelled: list[tuple[float, LoopLane]] = []
        self._deaf: list[LoopLane] = []
        """Lanes whose coroutines were cancelled but still run; already counted."""
        super().__init__(makers, options)
        self._afterwards.append(_stopper(self._homes))

    def report(self) -> dict[str, Any]:
        """Return the same as every backend; coroutines that were cancelled just now get their time to end."""
        for deadline, lane in self._cancelled:
            if not lane.has_ended.wait(max(0.0, deadline - time.monotonic())):
                self.abandoned += 1
                self._deaf.append(lane)
        self._cancelled.clear()
        return super().report()

    def _lane_maker(self, index: int, maker: Maker, gate: Gate) -> Callable[[], Lane]:
        post, homes = self._post, self._homes
        return lambda: LoopLane(index, AsyncSlot(maker), post, gate, homes)

    def _part_with(self, worker: LaneWorker) -> bool:
        lane = cast("LoopLane", worker.lane)
        if not lane.is_async:
            return super()._part_with(worker)
        if lane.home.answers(_SIGN_SECONDS):
            lane.leave()
            self._cancelled.append((time.monotonic() + GRACE_SECONDS, lane))
            return True
        owner = lane.home.current()
        if owner is not None and owner is not lane:
            blocker = next((other for other in self._workers if other.lane is owner), None)
            if blocker is None:
                self._leave_past(owner)
            elif not blocker.flight:
                self._leave_loop(None)  # a task that continues after its turn: its next turn will have to answer for it
            return False  # else the one that blocks the loop will exceed its own limit
        self._leave_loop(worker)  # blocked by this lane, or by a task without a known owner
        return True

    def _look_after(self, worker: LaneWorker, now: float) -> None:
        """Abandon a lane whose operation takes too long, and a loop that is blocked by an abandoned lane."""
        if self._cancelled or self._deaf:
            self._escape(now)
        super()._look_after(worker, now)

    def _escape(self, now: float) -> None:
        """Leave the loop if the end of a cancelled coroutine blocks it, as a ``close`` that hangs does."""
        home = self._homes[0]
        owner = home.current()
        late = [lane for deadline, lane in self._cancelled if now > deadline]
        if owner is None or owner not in [*self._deaf, *late] or home.answers(_SIGN_SECONDS):
            return
        self._leave_past(owner)

    def _leave_past(self, owner: LoopLane) -> None:
        """Leave the loop because of a lane that was left before."""
        self.abandoned -= owner in self._deaf  # counted again with its loop
        self._cancelled = [(deadline, lane) for deadline, lane in self._cancelled if lane is not owner]
        self._leave_loop(None)

    def _leave_loop(self, culprit: LaneWorker | None) -> None:
        """Abandon a blocked loop, and continue on a fresh one with all its other slots."""
        self.abandoned += 1
        blocked = self._homes[0]
        self._homes[:] = [LoopThread()]
        self._deaf.clear()  # none of them can block the fresh loop
        if culprit is not None:
            culprit.lane.leave()
        for worker in self._workers:
            lane = cast("LoopLane", worker.lane)
            if worker is culprit or not lane.is_async or lane.home is not blocked:
                continue
            lane.leave()
            worker.queue.extendleft(worker.flight.values())
            worker.flight = {}
            self._lost.update(worker.slots)
            worker.start()
            self._send(worker)
        blocked.stop()


def _stopper(homes: list[LoopThread]) -> Callable[[], None]:
    """Return what ends the loop that is in use."""
    return lambda: homes[0].stop()
