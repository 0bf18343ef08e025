"""Tools of a real MCP server in a process of its own."""

import contextlib
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

import turngym
from turngym.envs.tools.mcp_tools import McpServer
from turngym.envs.tools.questions import Questions
from turngym.envs.tools.tool_schema import problem_with
from turngym.errors import ConfigError, MissingExtra, ServerDown
from turngym.wrappers import Wrapping
from turngym.wrappers.tool_use.tools import Tools

GAME = "turngym/GuessTheNumber-v0"
HAS_MCP = importlib.util.find_spec("mcp") is not None
needs_mcp = pytest.mark.skipif(not HAS_MCP, reason="the package mcp is not installed (make test-integration)")
SERVER = '''
import os
from mcp.server.fastmcp import FastMCP

server = FastMCP("test")

@server.tool()
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b

@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)

@server.tool()
def leave() -> str:
    """End the server."""
    os._exit(3)

@server.tool()
async def never() -> str:
    """Never come back."""
    import anyio
    await anyio.sleep(600)
    return ""

server.run()
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[McpServer]:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    with McpServer([sys.executable, str(path)]) as made:
        yield made


def call(name: str, arguments: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


@needs_mcp
@pytest.mark.integration
def test_tools_of_a_server_are_called_and_its_errors_told(server: McpServer) -> None:
    env = Tools(gymnasium.make(GAME), tools=server.tools(), timeout=20.0)
    env.reset(seed=0)
    assert "Multiply two numbers." in env.instructions
    assert "\n42\n" in env.step(call("multiply", '{"a": 6, "b": 7}'))[0]
    assert "a must be integer" in env.step(call("multiply", '{"a": "six", "b": 7}'))[0]
    assert "no way" in env.step(call("fail", '{"reason": "no way"}'))[0]
    assert env.step("50")[0] in ("higher", "lower", "correct")


@needs_mcp
@pytest.mark.integration
def test_a_server_that_hangs_or_ends_is_an_answer_and_no_fault(server: McpServer) -> None:
    env = Tools(gymnasium.make(GAME), tools=server.tools(), timeout=1.0)
    env.reset(seed=0)
    assert "did not answer" in env.step(call("never", "{}"))[0]
    assert "\n6\n" in env.step(call("multiply", '{"a": 2, "b": 3}'))[0]
    assert "Error" in env.step(call("leave", "{}"))[0]
    assert "Error" in env.step(call("multiply", '{"a": 2, "b": 3}'))[0]
    assert env.step("50")[0] in ("higher", "lower", "correct")


@needs_mcp
@pytest.mark.integration
def test_a_server_that_ended_is_restarted_at_the_next_reset_and_counted_once(server: McpServer) -> None:
    wrapping = [Wrapping("tools", {"tools": server.tools(), "timeout": 60.0})]
    with turngym.make_vec(GAME, 2, backend="sync", wrappers=wrapping) as vector:
        vector.reset(seed=[0, 1])
        vector.step([call("leave", "{}"), call("leave", "{}")])
        vector.reset(seed=[2, 3])
        assert sum(vector.stats()["faults"].values()) == 1
        observations, *_ = vector.step([call("multiply", f'{{"a": {slot}, "b": 5}}') for slot in range(2)])
        assert [f"\n{5 * slot}\n" in text for slot, text in enumerate(observations)] == [True] * 2
    server._command = [sys.executable, "-c", "raise SystemExit(3)"]
    server.close()
    with pytest.raises(ServerDown, match=r"has ended, and cannot be restarted: .* does not start"):
        server.require_alive()


@needs_mcp
@pytest.mark.integration
def test_slots_share_one_server(server: McpServer) -> None:
    wrapping = [Wrapping("tools", {"tools": server.tools(), "timeout": 30.0})]
    for backend in ("thread", "asyncio"):
        with turngym.make_vec(GAME, 3, backend=backend, wrappers=wrapping) as vector:
            vector.reset(seed=[0, 1, 2])
            observations, *_ = vector.step([call("multiply", f'{{"a": {slot}, "b": 5}}') for slot in range(3)])
            assert [f"\n{5 * slot}\n" in text for slot, text in enumerate(observations)] == [True] * 3


@needs_mcp
@pytest.mark.integration
def test_schemas_of_a_server_are_checked_here(server: McpServer) -> None:
    (multiply,) = (tool for tool in server.tools() if tool.name == "multiply")
    assert problem_with({"a": 1, "b": 2}, multiply.parameters) == ""
    assert "missing" in problem_with({"a": 1}, multiply.parameters)
    server.close()
    server.close()


@needs_mcp
@pytest.mark.integration
@pytest.mark.parametrize("code", ["raise SystemExit(3)", "print('hello')"])
def test_a_program_that_is_no_server_is_refused(code: str) -> None:
    with pytest.raises(ConfigError, match=r"does not start|has said nothing"):
        McpServer([sys.executable, "-c", code], start_seconds=10.0)


@needs_mcp
@pytest.mark.integration
def test_closing_a_server_that_ends_by_itself_at_that_moment_is_harmless(
    server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.close()
    assert server._loop.is_closed() and not server._thread.is_alive()
    monkeypatch.setattr(server._thread, "is_alive", lambda: True)  # as seen a moment before it ended
    server.close()
    assert server._loop.is_closed()


@needs_mcp
@pytest.mark.integration
def test_a_program_that_says_nothing_is_refused_in_time() -> None:
    with pytest.raises(ConfigError, match=r"has said nothing for 0.5 seconds"):
        McpServer([sys.executable, "-c", "import time; time.sleep(600)"], start_seconds=0.5)


def test_a_command_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    empty: list[str] = []
    for command in ("python server.py", empty):
        with pytest.raises(ConfigError, match="is a command such as"):
            McpServer(command)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtra, match=r"turngym\[mcp\]"):
        McpServer(["python", "server.py"])


def _questions(tmp_path: Path, place: str) -> Questions:
    data = tmp_path / "questions.jsonl"
    data.write_text('{"question": "6 times 7?", "answer": "42"}\n')
    return Questions(data=str(data), tools=(place,))


@needs_mcp
@pytest.mark.integration
def test_questions_take_the_tools_of_a_command(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    env = _questions(tmp_path, f"mcp:{sys.executable} {path}")
    env.reset(seed=0)
    assert "Multiply two numbers. The text is JSON" in env.instructions
    assert "\n42\n" in env.step('<multiply>{"a": 6, "b": 7}</multiply>')[0]
    assert "a must be integer" in env.step('<multiply>{"a": "six", "b": 7}</multiply>')[0]
    assert "no way" in env.step("<fail>no way</fail>")[0]
    assert env.step("<answer>42</answer>")[1] == 1.0


@needs_mcp
@pytest.mark.integration
def test_questions_take_the_tools_of_an_address(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    path = tmp_path / "server.py"
    path.write_text(
        SERVER.replace("server.run()", "server.run('streamable-http')").replace('("test")', f'("test", port={port})')
    )
    with subprocess.Popen([sys.executable, str(path)], stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            with McpServer(f"http://127.0.0.1:{port}/mcp") as server:
                names = [tool.name for tool in server.tools()]
                env = Tools(gymnasium.make(GAME), tools=server.tools(), timeout=60.0)
                env.reset(seed=0)
                assert "multiply" in names and "\n42\n" in env.step(call("multiply", '{"a": 6, "b": 7}'))[0]
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)


@needs_mcp
@pytest.mark.integration
def test_a_command_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not start"):
        _questions(tmp_path, "mcp:/no/such/program")
    with pytest.raises(ConfigError, match="No closing quotation"):
        _questions(tmp_path, "mcp:python 'server.py")
