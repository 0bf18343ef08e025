"""An event loop that something blocks: only the slot that is to blame shows it, and nobody waits for ever."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import toy_envs
from vector_envs import Waiting
from vector_play import assert_faulted, play, without

from turngym.envs.vector import TextVectorEnv, make_vec

LIMIT = 1.5
TIMEOUT = f"timeout: step took longer than {LIMIT} s"
Make = Callable[..., TextVectorEnv]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr("turngym.envs.vector.backends.thread._CLOSE_SECONDS", 0.3)
    opened: list[TextVectorEnv] = []

    def make(backend: str, env_fns: list[Any], **options: Any) -> TextVectorEnv:
        limits = {"step_timeout_seconds": LIMIT, "reset_timeout_seconds": LIMIT}
        opened.append(make_vec(env_fns=env_fns, backend=backend, **(limits | options)))
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


class Parent(Waiting):
    """Starts tasks that block the loop: in its turn, or some time after it."""

    async def async_step(self, action: str) -> Any:
        if action.startswith("task"):

            async def block(seconds: float) -> None:
                await asyncio.sleep(seconds)
                time.sleep(600)

            self.task = asyncio.create_task(block(0.0 if action == "task" else 0.1))
            await asyncio.sleep(0.01)
        return await super().async_step("up" if action == "task later" else action)


def test_an_async_close_that_blocks_the_loop_holds_up_nobody(make: Make) -> None:
    """It runs after its slot was given up, so that no limit of any slot is about it."""

    class Stuck(Waiting):
        async def async_close(self) -> None:
            time.sleep(600)

    vector = make("asyncio", [Stuck, Waiting], autoreset_mode="disabled", reset_timeout_seconds=30.0)
    twin = make("sync", [toy_envs.Faulty] * 2, autoreset_mode="disabled")
    vector.reset(seed=0)
    rows = vector.step(["hang", "up"])[4].rows
    assert_faulted(rows[0], TIMEOUT)
    assert repr(vector.reset(seed=5)) == repr(twin.reset(seed=5))
    assert repr(vector.step(["up", "down"])) == repr(twin.step(["up", "down"]))
    assert vector.stats()["abandoned"] == 1 and vector.stats()["faults"] == {"timeout": 1}


def test_a_task_that_an_environment_started_and_that_blocks_the_loop_is_a_timeout(make: Make) -> None:
    vector, twin = make("asyncio", [Parent, Waiting]), make("sync", [toy_envs.Faulty] * 2)
    broken = play(vector, 3, {(1, 0): "task"})
    assert_faulted(broken[2][4][0], TIMEOUT)
    assert without(broken, 0) == without(play(twin, 3, {}), 0)
    assert vector.stats()["abandoned"] == 1


def test_an_environment_that_is_made_while_the_loop_is_exchanged_goes_to_the_fresh_one(make: Make) -> None:
    made: list[int] = []
    blocked = threading.Event()

    class Slow(Waiting):
        def __init__(self) -> None:
            super().__init__()
            made.append(1)
            if len(made) > 1:
                blocked.wait(30)

    vector = make("asyncio", [Slow, Waiting], autoreset_mode="disabled", reset_timeout_seconds=30.0)
    vector.reset(seed=0)
    assert_faulted(vector.step(["hang"], [0])[4].rows[0], TIMEOUT)
    backend: Any = vector._backend
    first, leave_loop = backend._homes[0], backend._leave_loop

    def exchanged(culprit: Any) -> None:
        leave_loop(culprit)
        blocked.set()

    backend._leave_loop = exchanged
    vector.send(["block"], [1])
    vector.reset(seed=0, options={"reset_mask": np.array([True, False])})  # made anew while slot 1 blocks the loop
    assert_faulted(vector.recv()[5].rows[0], TIMEOUT)
    assert vector.step(["up"], [0])[0][0].startswith("count 1") and backend._homes[0] is not first


def test_a_task_that_blocks_the_loop_after_its_turn_is_no_fault_of_the_others(make: Make) -> None:
    """They wait on the blocked loop and have not even begun; the one who started the task is idle."""
    vector, twin = make("asyncio", [Waiting, Parent, Waiting]), make("sync", [toy_envs.Faulty] * 3)
    for each in (vector, twin):
        each.reset(seed=6)
        each.step(["up", "task later" if each is vector else "up", "up"])
    time.sleep(0.3)
    assert repr(vector.step(["up", "down"], [0, 2])) == repr(twin.step(["up", "down"], [0, 2]))
    assert vector.stats()["faults"] == {} and vector.stats()["abandoned"] == 1


def test_a_task_of_an_episode_that_is_long_over_is_no_fault_of_anybody(make: Make) -> None:
    """Its lane was given up before, ended in order, and is on no list any more."""

    class Cancelled(Waiting):
        async def async_step(self, action: str) -> Any:
            if action == "leave":

                async def block() -> None:
                    await asyncio.sleep(2 * LIMIT + 1)
                    time.sleep(600)

                self.task = asyncio.create_task(block())
                await asyncio.sleep(600)
            return await super().async_step(action)

    vector = make("asyncio", [Cancelled, Waiting], autoreset_mode="disabled")
    twin = make("sync", [toy_envs.Faulty] * 2, autoreset_mode="disabled")
    vector.reset(seed=0)
    assert_faulted(vector.step(["leave", "up"])[4].rows[0], "timeout")
    assert vector.stats()["abandoned"] == 0
    time.sleep(LIMIT + 1.5)
    assert repr(vector.reset(seed=5)) == repr(twin.reset(seed=5))
    assert repr(vector.step(["up", "down"])) == repr(twin.step(["up", "down"]))
    assert vector.stats()["faults"] == {"timeout": 1}
