"""Environments that hang in pure Python, and names without end: they cost their own sessions, and nobody else's."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest
from asgi import Socket, request
from openenv_apps import app_of, code_of, fresh, run
from served_envs import Served

from turngym.envs.core import Outcome

__all__ = ["fresh"]


class Busy(Served):
    """Computes without end on ``hang``, without a break, until the test is over; asynchronously just as well."""

    over: ClassVar[threading.Event] = threading.Event()

    def apply_action(self, action: str) -> Outcome[str]:
        end = time.monotonic() + 20  # for a server that would wait for it
        while action == "hang" and not self.over.is_set() and time.monotonic() < end:
            pass
        return super().apply_action(action)

    async def async_reset(self, **options: object) -> object:
        return self.reset(**options)  # type: ignore[arg-type]

    async def async_step(self, action: str) -> object:
        return self.step(action)


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    Busy.over.clear()
    yield
    Busy.over.set()


def test_an_environment_that_computes_without_end_holds_up_nobody_else() -> None:
    async def talk() -> None:
        app = app_of(Busy, step_seconds=1.0)
        async with Socket(app) as one, Socket(app) as other:
            await one.ask("reset")
            await other.ask("reset")
            hanging = asyncio.create_task(one.act("hang"))
            await asyncio.sleep(0.1)
            assert (await other.act("go"))["data"]["observation"]["text"] == "1"
            assert await request(app, "GET", "/health") == (200, {"status": "healthy"})
            assert not hanging.done()
            answer = await hanging
            assert code_of(answer) == "EXECUTION_ERROR" and "1 seconds" in answer["data"]["message"]
            assert (await one.ask("reset"))["type"] == "observation"
            assert (await one.act("go"))["data"]["observation"]["text"] == "1"

    run(talk())


def test_with_too_many_that_hang_no_other_environment_is_made_and_the_others_go_on() -> None:
    async def talk() -> None:
        app = app_of(Busy, step_seconds=2.0, max_abandoned=2)
        async with Socket(app) as one, Socket(app) as other:
            await other.ask("reset")
            for _ in range(2):
                await one.ask("reset")
                await one.act("hang")
            answer = await one.ask("reset")
            assert code_of(answer) == "CAPACITY_REACHED" and "2 environments" in answer["data"]["message"]
            assert (await other.act("go"))["data"]["observation"]["text"] == "1"
            Busy.over.set()
            while app.sessions.threads.given_up:
                await asyncio.sleep(0.01)
            assert (await one.ask("reset"))["type"] == "observation"

    run(talk())


def test_names_without_end_leave_half_of_the_places() -> None:
    async def talk() -> None:
        app = app_of(max_sessions=20)
        found = [(await request(app, "POST", "/reset", {"session_id": str(name)}))[0] for name in range(30)]
        assert found == [200] * 10 + [503] * 20
        async with Socket(app) as socket:
            assert (await socket.ask("reset"))["type"] == "observation"
        step = {"session_id": "0", "action": {"message": "go"}}
        assert (await request(app, "POST", "/step", step))[0] == 200

    run(talk())


def test_a_new_name_takes_the_place_of_the_one_that_was_idle_for_longest() -> None:
    async def talk() -> None:
        app = app_of(max_sessions=4, spare_seconds=0.05)
        for name in ("first", "second"):
            assert (await request(app, "POST", "/reset", {"session_id": name}))[0] == 200
        await asyncio.sleep(0.1)
        step = {"session_id": "first", "action": {"message": "go"}}
        assert (await request(app, "POST", "/step", step))[0] == 200
        assert (await request(app, "POST", "/reset", {"session_id": "third"}))[0] == 200
        assert (await request(app, "POST", "/step", step))[0] == 200
        assert (await request(app, "POST", "/step", {**step, "session_id": "second"}))[0] == 409
        assert len(app.sessions) == 2
        while Served.closed != ["closed"]:
            await asyncio.sleep(0.01)

    run(talk())
