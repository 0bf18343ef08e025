"""Environments for tests of vectors: counters with coroutines, ones that meet, refuse or interrupt."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from toy_envs import Counter, Faulty, breakdown, take_mark

from turngym.errors import ConfigError


class Waiting(Faulty):
    """Waits in coroutines, and breaks in them too.

    It records the threads in which its methods run.
    """

    closed_in = ""

    @property
    def seen_by(self) -> set[str]:
        found: set[str] = self.__dict__.setdefault("_seen_by", set())
        return found

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        self.seen_by.add(threading.current_thread().name)
        await asyncio.sleep(0)
        if self.marker and self.reset_fault == "hang" and take_mark(Path(self.marker)):
            await asyncio.sleep(600)
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.seen_by.add(threading.current_thread().name)
        await asyncio.sleep(self.delay)
        if action == "hang":
            await asyncio.sleep(600)
        elif action == "deaf":
            await self._deaf()
        elif action == "block":
            time.sleep(600)
        elif action == "thread":
            await asyncio.to_thread(time.sleep, 600)
        elif action == "exit":
            breakdown("exit")
        elif action == "cancel":
            raise asyncio.CancelledError
        return self.step(action)

    async def _deaf(self) -> None:
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue

    async def async_close(self) -> None:
        await asyncio.sleep(0)
        self.closed_in = threading.current_thread().name
        self.close()


class Meeting(Counter):
    """Every step waits until all members of the meeting are in theirs: lock-step one after the other never ends."""

    def __init__(self, gathered: list[int], count: int) -> None:
        super().__init__()
        self.gathered, self.members = gathered, count

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.gathered.append(1)
        while len(self.gathered) < self.members:
            await asyncio.sleep(0.001)
        return super().step(action)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.gathered.append(1)
        while len(self.gathered) < self.members:
            time.sleep(0.001)
        return super().step(action)


class Picky(Counter):
    """Refuses to begin its second episode, as an environment does whose options are wrong."""

    def __init__(self, is_picky: bool) -> None:
        super().__init__(goal=1)
        self.episodes, self.is_picky = 0, is_picky

    def begin(self, task: str | int | None) -> str:
        self.episodes += 1
        if self.is_picky and self.episodes == 2:
            raise ConfigError("no second episode")
        return super().begin(task)


class Interrupting(Counter):
    """Interrupts a process itself, so that the interrupt comes in the middle of a step for certain."""

    def __init__(self, pid: int = 0, delay: float = 0.0) -> None:
        super().__init__()
        self.pid, self.delay = pid, delay

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "interrupt":
            os.kill(self.pid, signal.SIGINT)
        time.sleep(self.delay)
        return super().step(action)
