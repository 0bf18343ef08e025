"""Environments as tools of MCP: the protocol, scores that are recorded and not shown, the real client."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from asgi import raw_request

from turngym.__main__ import main
from turngym.agents.gateway.mcp import EnvSession, Episodes, answered
from turngym.agents.gateway.mcp.streamable import McpApp
from turngym.benchmarks.cli.options.parsing import text_env_maker
from turngym.envs.servers.hosting import HostLimits
from turngym.errors import ConfigError

GAME = "turngym/NumberLine-v0"
OPTIONS: dict[str, Any] = {"max_turns": 3, "highest": 3}
needs_mcp = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason="the package mcp is not installed (make test-integration)"
)
FIRST = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def session(records: Path | None = None, most: int = 0, env: str = GAME, **options: Any) -> EnvSession:
    return EnvSession(maker(env, **options), Episodes(3, most, records))


def maker(env: str = GAME, **options: Any) -> Callable[[], Any]:
    return text_env_maker(env, {**OPTIONS, **options} if env == GAME else options)


def message(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(tools: EnvSession, name: str, **arguments: Any) -> tuple[str, bool]:
    answer = asyncio.run(answered(message("tools/call", name=name, arguments=arguments), tools))
    assert answer is not None
    return answer["result"]["content"][0]["text"], answer["result"]["isError"]


def test_an_episode_is_played_and_its_score_recorded_and_not_shown(tmp_path: Path) -> None:
    records = tmp_path / "scores.jsonl"
    tools = session(records)
    shown = [call(tools, "reset")[0], call(tools, "legal_actions")[0]]
    assert shown[1].split("\n") == ["+", "-"]
    shown += [call(tools, "step", action="x")[0] for _ in range(3)]
    assert shown[-1].endswith("The episode is over.") and not any("reward" in text.lower() for text in shown[1:])
    assert call(tools, "step", action="x") == ("No episode is under way: call reset.", True)
    call(tools, "reset")
    asyncio.run(tools.close())
    first, second = map(json.loads, records.read_text().splitlines())
    assert (first["episode"], first["turns"], first["status"]) == (0, 3, "truncated") and first["success"] == 0
    assert (second["episode"], second["turns"], second["status"]) == (1, 0, "abandoned")
    assert first["seed"] != second["seed"]


def test_episodes_are_those_of_the_seed_and_no_more_than_allowed() -> None:
    first, second = session(most=2), session(most=2)
    texts = [call(first, "reset") for _ in range(2)]
    assert texts == [call(second, "reset") for _ in range(2)]
    assert call(first, "reset") == ("All 2 episodes have been played.", True)


def test_an_environment_that_breaks_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from turngym.envs import Outcome, TextEnv\n"
        "class Bad(TextEnv[str]):\n"
        "    def initial_state(self, generator):\n        return int(generator.integers(9))\n"
        "    def observation(self):\n        return 'a\\ud800'\n"
        "    def apply_action(self, action):\n        raise RuntimeError('broken inside')\n"
    )
    tools = session(tmp_path / "scores.jsonl", env=f"{tmp_path}/bad.py:Bad")
    assert call(tools, "reset") == ("a\ufffd", False)
    text, is_error = call(tools, "step", action="x")
    assert is_error and "broken inside" in text and call(tools, "step", action="x")[1]
    assert json.loads((tmp_path / "scores.jsonl").read_text())["status"] == "fault"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (3, -32600),
        ([], -32600),
        ({"jsonrpc": "1.0", "method": "ping", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": 3, "id": 1}, -32600),
        ({"jsonrpc": "2.0", "method": "ping", "id": [1]}, -32600),
        ({"jsonrpc": "2.0", "method": "ping", "id": True}, -32600),
        ({"jsonrpc": "2.0", "method": "tools/call", "id": 1, "params": [1]}, -32602),
        (message("tools/call", name="exec"), -32602),
        (message("tools/call", name=["reset"]), -32602),
        (message("tools/call", name="step", arguments="x"), -32602),
        (message("resources/read", uri="file:///etc/passwd"), -32601),
    ],
)
def test_wrong_messages_are_answered_with_an_error(sent: Any, code: int) -> None:
    answer = asyncio.run(answered(sent, session()))
    assert answer is not None and answer["error"]["code"] == code


def test_a_client_speaks_over_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [message("initialize", **FIRST), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    lines += [message("tools/list", 2), message("tools/call", "three", name="step", arguments={"action": 3})]
    written = "\n".join(["", *map(json.dumps, lines), "{", "[" * 100_000])
    monkeypatch.setattr(sys, "stdin", io.StringIO(written))
    assert main(["mcp", GAME, "--option", "highest=3"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in answers] == [1, 2, "three", None, None]
    assert {tool["name"] for tool in answers[1]["result"]["tools"]} == {"reset", "step", "legal_actions"}
    assert answers[2]["result"]["isError"] and answers[3]["error"]["code"] == -32700


def test_sessions_over_http_are_apart_and_bounded() -> None:
    async def talk() -> None:
        app = McpApp(maker(), Episodes(3), "secret", HostLimits(max_sessions=2))
        own = {"authorization": "Bearer secret"}

        async def post(content: Any, **headers: str) -> int:
            status, _ = await raw_request(app, "POST", "/mcp", content, {**own, **headers})
            return status

        assert (await raw_request(app, "POST", "/mcp", message("initialize", **FIRST)))[0] == 401
        assert await post(message("tools/list")) == 400 and await post(b"{") == 400
        assert [await post(message("initialize", **FIRST)) for _ in range(3)] == [200, 200, 503]
        one, two = app._sessions
        assert await post(message("tools/call", name="reset"), **{"mcp-session-id": one}) == 200
        assert app._sessions[one]._record is not None and app._sessions[two]._record is None
        assert await post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **{"mcp-session-id": one}) == 202
        assert await post(message("ping"), **{"mcp-session-id": "f" * 32}) == 404
        assert await post(b"x" * 2**21, **{"mcp-session-id": one}) == 400
        assert await post(message("ping"), origin="http://evil.org") == 403
        headers = {**own, "mcp-session-id": one}
        assert (await raw_request(app, "GET", "/mcp", None, headers))[0] == 405
        assert (await raw_request(app, "DELETE", "/mcp", None, headers))[0] == 200
        assert await post(message("ping"), **{"mcp-session-id": one}) == 404
        await app.close()

    asyncio.run(talk())


def test_a_file_of_scores_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scores cannot be written"):
        Episodes(records=tmp_path)


async def play_with(streams: Any) -> list[str]:
    """Play two episodes with the client of the package mcp."""
    from mcp import ClientSession

    async with streams as (reader, writer, *_), ClientSession(reader, writer) as client:
        await client.initialize()
        assert {tool.name for tool in (await client.list_tools()).tools} == {"reset", "step", "legal_actions"}
        texts = []
        for name, arguments in (
            ("reset", {}),
            ("legal_actions", {}),
            *[("step", {"action": "x"})] * 3,
            ("step", {}),
        ):
            found = await client.call_tool(name, arguments)
            assert found.isError == (not arguments and name == "step")
            texts.append(found.content[0].text)
        return texts


def words(*more: str) -> list[str]:
    return ["-m", "turngym", "mcp", GAME, "--option", "highest=3", "--option", "max_turns=3", *more]


def check_scores(path: Path, texts: Sequence[str]) -> None:
    assert "+" in texts[1] and texts[4].endswith("The episode is over.")
    (record,) = map(json.loads, path.read_text().splitlines())
    assert record["turns"] == 3 and record["status"] in ("terminated", "truncated")


@pytest.mark.integration
@needs_mcp
def test_the_client_of_the_package_plays_over_standard_input(tmp_path: Path) -> None:
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

    path = tmp_path / "scores.jsonl"
    place = {"PYTHONPATH": ":".join(sys.path[1:] and [entry for entry in sys.path if entry])}
    environment = {**get_default_environment(), **place}
    server = StdioServerParameters(command=sys.executable, args=words("--records", str(path)), env=environment)
    check_scores(path, asyncio.run(play_with(stdio_client(server))))


@pytest.mark.integration
@needs_mcp
def test_the_client_of_the_package_plays_over_http(tmp_path: Path) -> None:
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    async def play(url: str) -> list[str]:
        async with httpx.AsyncClient(headers={"Authorization": "Bearer secret"}, timeout=120) as client:
            return await play_with(streamable_http_client(url, http_client=client))

    path = tmp_path / "scores.jsonl"
    command = [sys.executable, *words("--records", str(path), "--port", "0", "--token", "secret")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().partition("serving at ")[2].partition(";")[0]
            check_scores(path, asyncio.run(play(url)))
        finally:
            server.terminate()


PROGRAM = """
import asyncio, os
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def play():
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    async with streamablehttp_client(os.environ["TURNGYM_MCP_URL"], headers=headers) as streams:
        async with ClientSession(streams[0], streams[1]) as client:
            await client.initialize()
            await client.list_tools()
            assert "+" in (await client.call_tool("reset", {})).content[0].text
            assert "+" in (await client.call_tool("legal_actions", {})).content[0].text
            text = ""
            while "The episode is over." not in text:
                found = await client.call_tool("step", {"action": "x"})
                text = found.content[0].text
            assert (await client.call_tool("step", {"action": "x"})).isError
            assert (await client.call_tool("reset", {})).isError

asyncio.run(play())
"""


@pytest.mark.integration
@needs_mcp
def test_an_agent_program_plays_its_episode_with_the_client_of_the_package(tmp_path: Path) -> None:
    from gateway_clients import LIMITS
    from small import small_model

    from turngym.agents.agent_program import ProgramConfig
    from turngym.agents.episodes.rollout import rollout
    from turngym.agents.gateway.policy import gateway_for
    from turngym.agents.gateway.programs import playing
    from turngym.agents.trajectory import EpisodeSpec
    from turngym.envs.vector import make_vec

    (tmp_path / "program.py").write_text(PROGRAM)
    vector = make_vec(GAME, 2, autoreset_mode="disabled", **OPTIONS)
    try:
        config = ProgramConfig(command=f"{sys.executable} {tmp_path}/program.py")
        with playing(gateway_for(small_model(), limits=LIMITS), config) as agent:
            played = rollout(vector, agent, [EpisodeSpec(k, 5, 0) for k in range(2)], final_prompts=False)
            agent.settle()
            assert [{turn.action for turn in each.turns} for each in played] == [{"x"}] * 2
            assert [play.program.status for play in agent.played.values()] == [0, 0]
    finally:
        vector.close()
