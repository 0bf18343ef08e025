"""Environments to serve: they wait in coroutines or in threads, break, hang, and end more than their episode."""

import asyncio
import sys
import threading
import time
from typing import Any, ClassVar

from turngym.envs.core import Outcome, TextEnv
from turngym.types import JSONValue


class Served(TextEnv[str]):
    """Counts its turns; some actions break it.

    Args:
        start: Number before the first turn; negative numbers cannot be made.
    """

    closed: ClassVar[list[str]] = []
    gate = threading.Event()
    waiting: ClassVar[set[int]] = set()

    def __init__(self, start: int = 0, *, max_turns: int = 5, split: str = "train", env_id: str = "") -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id)
        if start < 0:
            raise RuntimeError("no such number")
        self.finite_instances, self.start = 1, start
        self.instructions = "Count."

    def begin(self, task: str | int | None) -> str:
        self.instance, self.count = "the only one", self.start
        return f"{self.count} {int(self.np_random.integers(10**6))}"

    def apply_action(self, action: str) -> Outcome[str]:
        self.count += 1
        if action == "break":
            raise ValueError("broken\nin two")
        if action == "exit":
            sys.exit("away")
        if action == "wait":
            Served.waiting.add(id(self))
            assert self.gate.wait(60)
        return Outcome(str(self.count), float(self.count), terminated=action == "end", success=action == "end")

    def anchor(self) -> str:
        return str(self.count)

    def save_state(self) -> JSONValue:
        return self.count

    def load_state(self, state: JSONValue) -> None:
        self.count = state

    def close(self) -> None:
        self.closed.append("closed")


class Waiting(Served):
    """The same, and in coroutines too; ``nap`` waits a second, ``sleep`` until the gate opens."""

    def apply_action(self, action: str) -> Outcome[str]:
        if action == "nap":
            time.sleep(1.0)
        if action == "sleep":
            assert self.gate.wait(60)
        return super().apply_action(action)

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        await asyncio.sleep(0)
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return await asyncio.to_thread(self.step, action)
