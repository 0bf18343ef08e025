"""Who may ask the server for OpenEnv's clients, and what it answers over HTTP."""

import asyncio
from functools import partial
from typing import Any

import gymnasium
import pytest
from asgi import Socket, request
from openenv_apps import TOKEN, app_of, fresh, run
from served_envs import Served

from turngym.envs.servers.openenv.http import LARGEST_MESSAGE, PATHS
from turngym.envs.servers.openenv.server import about
from turngym.envs.servers.openenv.sessions import Limits
from turngym.errors import ConfigError

__all__ = ["fresh"]


def test_without_a_token_only_the_loopback_is_served_and_no_page_of_another_origin() -> None:
    refused = [{"host": "example.org"}, {"host": ""}, {"origin": "http://evil.org"}, {"origin": "null"}]

    async def talk() -> None:
        app = app_of()
        for headers in refused:
            async with Socket(app, headers) as socket:
                assert socket.greeting == {"type": "websocket.close", "code": 1008}
            status, content = await request(app, "GET", "/metadata", headers=headers)
            assert status == 403 and content["detail"]
        for headers in [{"host": "localhost:1"}, {"host": "[::1]:1"}, {"origin": "http://127.0.0.1:8000"}]:
            async with Socket(app, headers) as socket:
                assert socket.greeting["type"] == "websocket.accept"

    run(talk())


def test_with_a_token_whoever_has_it_is_served() -> None:
    async def talk() -> None:
        app = app_of(token="secret")
        for given in [None, "secret", "Bearer", "Bearer sesame", "Basic secret", "Bearer secret2"]:
            headers = {} if given is None else {"authorization": given}
            async with Socket(app, headers) as socket:
                assert socket.greeting["type"] == "websocket.close"
            assert (await request(app, "GET", "/schema", headers=headers))[0] == 401
            assert await request(app, "GET", "/health", headers=headers) == (200, {"status": "healthy"})
        assert (await request(app, "GET", "/schema", headers=TOKEN))[0] == 200
        async with Socket(app, TOKEN) as socket:
            assert (await socket.ask("reset"))["type"] == "observation"
        assert len(app.sessions) == 0

    run(talk())


def test_the_paths_of_the_document_are_those_that_are_served() -> None:
    async def talk() -> None:
        app = app_of()
        _, document = await request(app, "GET", "/openapi.json")
        assert {(method, path) for path, methods in document["paths"].items() for method in methods} == set(PATHS)
        assert (await request(app, "GET", "/metadata"))[1]["readme_content"] == "Count."
        _, schemas = await request(app, "GET", "/schema")
        assert schemas["action"]["required"] == ["message"]
        assert (await request(app, "POST", "/mcp", {}))[1]["error"]["code"] == -32600
        assert (await request(app, "POST", "/mcp", b"{"))[1]["error"]["code"] == -32700
        assert (await request(app, "POST", "/mcp", {"id": 4, "method": "tools/list"}))[1]["id"] == 4
        assert (await request(app, "GET", "/reset"))[0] == 405
        assert (await request(app, "GET", "/web"))[0] == 404
        assert await request(app, "HEAD", "/health") == (200, None)
        assert (await request(app, "POST", "/reset", b"x" * (LARGEST_MESSAGE + 2)))[0] == 413

    run(talk())


def test_a_session_by_name_is_played_over_http() -> None:
    async def talk() -> None:
        app = app_of(max_sessions=2)
        status, content = await request(app, "POST", "/reset", {"seed": 3, "session_id": "mine"})
        native = Served()
        assert status == 200 and content["observation"]["text"] == native.reset(seed=3)[0]
        step = {"session_id": "mine", "action": {"message": "go"}}
        answers = await asyncio.gather(*[request(app, "POST", "/step", step) for _ in range(5)])
        assert sorted(content["observation"]["text"] for _, content in answers) == ["1", "2", "3", "4", "5"]
        assert (await request(app, "GET", "/state", query="session_id=mine"))[1]["step_count"] == 5
        assert (await request(app, "POST", "/step", step))[0] == 500
        for wrong in ({"session_id": "other", "action": {"message": "go"}}, {"action": {"message": "go"}}):
            assert (await request(app, "POST", "/step", wrong))[0] == 409
        assert (await request(app, "POST", "/step", {"session_id": "mine"}))[0] == 422
        assert (await request(app, "POST", "/reset", {"session_id": ""}))[0] == 422
        assert (await request(app, "POST", "/reset", b"{"))[0] == 400
        assert (await request(app, "POST", "/reset", {"seed": 3}))[1]["observation"]["text"] == native.reset(seed=3)[0]
        assert len(app.sessions) == 1 and Served.closed == ["closed"]
        async with Socket(app):
            assert (await request(app, "POST", "/reset", {"session_id": "third"}))[0] == 503

    run(talk())


def test_the_life_of_the_server_ends_idle_sessions_by_name_and_all_others_at_its_end() -> None:
    async def talk() -> None:
        app, events = app_of(idle_seconds=0.2), asyncio.Queue[dict[str, Any]]()
        said: asyncio.Queue[Any] = asyncio.Queue()
        life = asyncio.create_task(app({"type": "lifespan"}, events.get, said.put))
        events.put_nowait({"type": "lifespan.startup"})
        assert (await said.get())["type"] == "lifespan.startup.complete"
        await request(app, "POST", "/reset", {"session_id": "mine"})
        while app.sessions:
            await asyncio.sleep(0.02)
        session = app.sessions.open()
        await session.reset({})
        events.put_nowait({"type": "lifespan.shutdown"})
        assert (await said.get())["type"] == "lifespan.shutdown.complete"
        await life
        assert Served.closed == ["closed"] * 2

    run(talk())


def test_a_picture_is_shown_as_a_data_url() -> None:
    async def talk() -> None:
        game = partial(gymnasium.make, "turngym/Sokoban-v0", image=True)
        async with Socket(app_of(game)) as socket:
            observation = (await socket.ask("reset", seed=1))["data"]["observation"]
            assert observation["image"].startswith("data:image/png;base64,iVBOR") and "#" in observation["text"]

    run(talk())


def test_limits_and_environments_that_make_no_sense_are_refused() -> None:
    for wrong in ({"max_sessions": 0}, {"idle_seconds": float("inf")}, {"threads": -1}):
        with pytest.raises(ConfigError, match="greater than 0"):
            Limits(**wrong)
    with pytest.raises(ConfigError, match="not text"):
        about(partial(gymnasium.make, "CartPole-v1"), "CartPole-v1")
