"""An event loop in a thread, and the lanes whose operations are coroutines on it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any
from weakref import WeakKeyDictionary

from turngym.envs.vector.backends.lanes.aio import AsyncSlot
from turngym.envs.vector.backends.lanes.lanes import Answer, Broken, Gate, Lane
from turngym.envs.vector.backends.workers import Order
from turngym.envs.vector.slots.boundary import describe

GRACE_SECONDS = 0.5
"""Time limit for the end of a cancelled coroutine."""


class DaemonExecutor(ThreadPoolExecutor):
    """Runs every call in a fresh thread that does not keep the program from ending."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call."""
        future: Future[Any] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # reported through the future
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=call, name="turngym-call", daemon=True).start()
        return future


class LoopThread:
    """An event loop that runs in a separate thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(DaemonExecutor())
        self.loop.set_task_factory(self._make_task)
        self.owners: WeakKeyDictionary[asyncio.Future[Any], LoopLane] = WeakKeyDictionary()
        """The lane of each task, including tasks started by an environment."""
        self._is_stopping = False
        threading.Thread(target=self._run, name="turngym-loop", daemon=True).start()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in the loop's thread, soon; not at all if the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def answers(self, seconds: float) -> bool:
        """Return whether the loop responds within that time."""
        sign = threading.Event()
        self.call(sign.set)
        return sign.wait(seconds)

    def current(self) -> LoopLane | None:
        """Return the lane whose task is running, or None; a task that blocks the loop remains current."""
        task = asyncio.current_task(self.loop)
        return None if task is None else self.owners.get(task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        parent = asyncio.current_task(loop)
        if parent is not None and parent in self.owners:
            self.owners[task] = self.owners[parent]
        return task

    def stop(self) -> None:
        """End the loop, unless something blocks it."""
        self._is_stopping = True
        self.call(self.loop.stop)

    def _run(self) -> None:
        while not self._is_stopping:
            with contextlib.suppress(SystemExit):  # of a task that an environment has started
                self.loop.run_forever()
        with contextlib.suppress(SystemExit):
            self.loop.run_until_complete(self._cancel_all())
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)


class LoopLane(Lane):
    """Runs the operations of one slot as coroutines, if its environment offers them, or else in a thread.

    Args:
        index: Number of the slot.
        slot: The slot.
        post: Destination of answers.
        gate: Limits how many threads are at work.
        homes: Holds the loop that is in use, which may be exchanged.
    """

    slot: AsyncSlot

    def __init__(
        self, index: int, slot: AsyncSlot, post: SimpleQueue[Answer], gate: Gate, homes: Sequence[LoopThread]
    ) -> None:
        super().__init__(index, slot, post, gate)
        self._homes = homes
        self.home = homes[0]
        self.is_async = False
        """True if the environment is known to offer coroutines."""
        self.task: asyncio.Task[None] | None = None

    def put(self, order: Order) -> None:
        """Run an operation."""
        if self.is_async:
            self.began = time.monotonic()  # the loop may be blocked, so that it never starts
            self.home.call(self._begin_now, order)
        else:
            super().put(order)

    def leave(self) -> None:
        """Abandon the lane: the current operation is cancelled, and the environment is closed."""
        if self.is_async:
            self.is_left = True
            self.home.call(self._cancel)
        else:
            super().leave()

    def run(self, order: Order) -> bool:
        """Run one operation in this thread, or hand it over to the loop if the environment offers coroutines."""
        self.began = time.monotonic()
        with contextlib.suppress(BaseException):  # the operation meets the same error and reports it
            self.is_async = self.slot.offers_coroutines()
        if self.is_async and not self.is_left:
            self.home = self._homes[0]  # read now: while the environment was made, the loop may have been exchanged
            self.home.call(self._begin, order)
            return False
        return super().run(order)

    # In the loop's thread.

    def _begin_now(self, order: Order) -> None:
        self.began = time.monotonic()
        self._begin(order)

    def _begin(self, order: Order) -> None:
        if not self.is_left:
            self._start(self._attend(order))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.task = self.home.loop.create_task(coroutine)
        self.home.owners[self.task] = self

    def _cancel(self) -> None:
        if self.task is None or self.task.done():
            self._start(self._close())
        else:
            self.task.cancel()

    async def _close(self) -> None:
        try:
            await self.slot.async_close()
        finally:
            self.has_ended.set()

    async def _attend(self, order: Order) -> None:
        serial, _, journal, op = order
        began = self.began
        try:
            content = await self.slot.attend(journal, op, self.begin)
        except BaseException as error:  # a cancelled or ended coroutine must report it
            content = Broken(describe(error))
        if self.is_left:
            await self._close()
        else:
            self.answer(serial, op[0], content, time.monotonic() - began)
