"""Slow and hanging environments behind MCP: they cost their own session its episode, and the others nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from asgi import request, scope_of

from turngym.agents.gateway.mcp import EnvSession, Episodes
from turngym.agents.gateway.mcp.streamable import McpApp
from turngym.envs.core import Outcome, TextEnv
from turngym.envs.servers.hosting import HostLimits

HANG_SECONDS = 30.0  # for a server that would wait for it


class Slow(TextEnv[str]):
    """Waits in ``wait`` until the test releases it."""

    released: ClassVar[threading.Event] = threading.Event()
    waiting: ClassVar[threading.Semaphore] = threading.Semaphore(0)
    closed: ClassVar[list[str]] = []

    def initial_state(self, generator: Any) -> int:
        return 0

    def observation(self) -> str:
        return "a door"

    def legal_actions(self) -> tuple[str, ...]:
        return ("wait", "go")

    def apply_action(self, action: str) -> Outcome[str]:
        if action == "wait":
            self.waiting.release()
            self.released.wait(HANG_SECONDS)
        return Outcome("a door")

    def close(self) -> None:
        self.closed.append("closed")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Slow.released, Slow.waiting = threading.Event(), threading.Semaphore(0)
    Slow.closed.clear()
    yield
    Slow.released.set()


def run(talk: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(HANG_SECONDS / 2):
            await talk()

    asyncio.run(within())


class Client:
    """A session of a server."""

    def __init__(self, app: McpApp) -> None:
        self.app, self.id = app, ""

    async def open(self) -> int:
        known = {*self.app._sessions}
        status, _ = await self.post("initialize")
        self.id = "".join({*self.app._sessions} - known)
        return status

    async def post(self, method: str, **params: Any) -> tuple[int, Any]:
        content = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await request(self.app, "POST", "/mcp", content, {"mcp-session-id": self.id})

    async def call(self, name: str, **arguments: Any) -> str:
        _, answer = await self.post("tools/call", name=name, arguments=arguments)
        return str(answer["result"]["content"][0]["text"])

    async def delete(self) -> int:
        return (await request(self.app, "DELETE", "/mcp", None, {"mcp-session-id": self.id}))[0]


async def clients(app: McpApp, count: int) -> list[Client]:
    opened = [Client(app) for _ in range(count)]
    for client in opened:
        assert await client.open() == 200
        await client.call("reset")
    return opened


def test_a_slow_step_holds_up_neither_its_own_session_s_questions_nor_others(tmp_path: Path) -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(records=tmp_path / "scores.jsonl"))
        slow, other = await clients(app, 2)
        step = asyncio.create_task(slow.call("step", action="wait"))
        await asyncio.to_thread(Slow.waiting.acquire)
        assert await slow.call("legal_actions") == "wait\ngo"
        assert await other.call("step", action="go") == "a door"
        assert await slow.delete() == 200 and (await slow.post("ping"))[0] == 404
        assert await other.call("step", action="go") == "a door"
        assert not step.done()  # none of the answers waited for it
        Slow.released.set()
        assert await step == "a door"
        await app.close()
        assert len(Slow.closed) == 2

    run(talk)
    found = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [(each["turns"], each["status"]) for each in found] == [(1, "abandoned"), (2, "abandoned")]


def test_many_slow_steps_hold_up_nobody() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes())
        *slow, other = await clients(app, 40)
        steps = [asyncio.create_task(each.call("step", action="wait")) for each in slow]
        for _ in slow:
            await asyncio.to_thread(Slow.waiting.acquire)
        assert await other.call("step", action="go") == "a door" and not any(step.done() for step in steps)
        Slow.released.set()
        assert await asyncio.gather(*steps) == ["a door"] * 39
        await app.close()

    run(talk)


def test_a_step_beyond_the_limit_ends_its_episode_and_the_session_resumes_with_a_new_environment(
    tmp_path: Path,
) -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(records=tmp_path / "scores.jsonl"), limits=HostLimits(step_seconds=0.1))
        (one,) = await clients(app, 1)
        assert "step took longer than 0.1 seconds" in await one.call("step", action="wait")
        assert await one.call("step", action="go") == "No episode is under way: call reset."
        assert await one.call("reset") == "a door" and await one.call("step", action="go") == "a door"
        await app.close()

    run(talk)
    first, _ = (json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines())
    assert (first["status"], first["turns"]) == ("fault", 0)


def test_with_too_many_hanging_environments_no_other_is_made() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(), limits=HostLimits(step_seconds=0.05, max_abandoned=2))
        (one, other) = await clients(app, 2)
        for _ in range(2):
            await one.call("step", action="wait")
            refused = await one.call("reset")
        assert "2 environments of this server hang" in refused
        assert await other.call("step", action="go") == "a door"
        await app.close()

    run(talk)


def test_idle_sessions_make_room_for_new_ones_and_busy_ones_do_not() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(), limits=HostLimits(max_sessions=2, spare_seconds=1e-9))
        (busy,) = await clients(app, 1)
        step = asyncio.create_task(busy.call("step", action="wait"))
        await asyncio.to_thread(Slow.waiting.acquire)
        assert [await Client(app).open() for _ in range(64)] == [200] * 64
        assert busy.id in app._sessions and not step.done()
        Slow.released.set()
        await step
        await app.close()

    run(talk)


def test_messages_that_are_no_step_keep_no_place() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(most=3), limits=HostLimits(max_sessions=3))
        pinging, refused, playing = await clients(app, 3)
        for each in app._sessions.values():
            each.last_step -= 61
        assert (await pinging.post("ping"))[0] == (await pinging.post("tools/list"))[0] == 200
        assert await pinging.call("legal_actions") == "wait\ngo"
        assert "played" in await refused.call("reset")
        assert "No episode" in await refused.call("step", action="go")
        assert await playing.call("step", action="go") == "a door"
        assert [await Client(app).open() for _ in range(3)] == [200, 200, 503]
        found = [(await each.post("ping"))[0] for each in (pinging, refused, playing)]
        assert found == [404, 404, 200], "the one that plays keeps its place"
        await app.close()

    run(talk)


def test_sessions_without_steps_are_ended_whatever_else_they_ask() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes(), limits=HostLimits(max_sessions=4, idle_seconds=0.05))
        events: asyncio.Queue[Any] = asyncio.Queue()
        events.put_nowait({"type": "lifespan.startup"})
        sent: asyncio.Queue[Any] = asyncio.Queue()
        life = asyncio.create_task(app(scope_of("lifespan", ""), events.get, sent.put))
        await sent.get()
        opened = await clients(app, 4)
        while app._sessions or app._ending:
            await opened[0].post("ping")
            await asyncio.sleep(0.01)
        assert len(Slow.closed) == 4
        events.put_nowait({"type": "lifespan.shutdown"})
        await life

    run(talk)


def test_calls_of_one_session_wait_in_a_short_queue() -> None:
    async def talk() -> None:
        app = McpApp(Slow, Episodes())
        (one,) = await clients(app, 1)
        steps = [asyncio.create_task(one.call("step", action="wait")) for _ in range(20)]
        done, waiting = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 4:
            more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert {task.result() for task in done} == {"16 calls of this session are under way: wait for their answers."}
        Slow.released.set()
        assert {await step for step in waiting} == {"a door"}
        await app.close()

    run(talk)


def test_over_standard_input_a_step_has_a_limit_too() -> None:
    async def talk() -> None:
        one = EnvSession(Slow, Episodes(), limits=HostLimits(step_seconds=0.05))
        await one.reset()
        with pytest.raises(Exception, match="longer than"):
            await one.step("wait")
        assert await one.reset() == "a door"
        await one.close()

    run(talk)
