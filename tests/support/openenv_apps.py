"""OpenEnv's server as an application in a test: made, asked, and its environments let go at the end."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from served_envs import Served

from turngym.envs.servers.openenv.app import OpenEnvApp
from turngym.envs.servers.openenv.http import About
from turngym.envs.servers.openenv.sessions import Limits

TOLD = About("a game", "a game of counting", "Count.", "0")
TOKEN = {"authorization": "Bearer secret", "host": "example.org"}


def app_of(make: Callable[[], Any] = Served, token: str = "", **limits: Any) -> OpenEnvApp:
    return OpenEnvApp(make, TOLD, Limits(**limits), token)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await work

    asyncio.run(limited())


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Served.closed.clear()
    Served.waiting.clear()
    Served.gate.clear()
    yield
    Served.gate.set()


def code_of(answer: Any) -> str:
    assert answer["type"] == "error" and answer["data"]["message"]
    return str(answer["data"]["code"])
