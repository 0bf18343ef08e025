"""Tools of MCP servers (Model Context Protocol): child processes over standard input and output, or servers by HTTP.

with McpServer(["python", "server.py"]) as server:
    env = wrap(env, "tools", tools=server.tools())
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shlex
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.tools.tool_schema import Tool
from turngym.errors import ConfigError, ServerDown, missing_extra

_LONGEST_DESCRIPTION = 4000
_LONGEST_SCHEMA = 20_000
_MOST_TOOLS = 100
_PING_SECONDS, _CANCEL_SECONDS = 20.0, 5.0
_NO_METHOD = -32601
"""Code of the answer of a server that does not know pings (JSON-RPC 2.0, section 5.1)."""
_ADDRESSES = ("http://", "https://")


class McpServer:
    """A server of tools; safe to call from many slots at once.

    Args:
        command: The program and its arguments, run in a separate process, or the address of a running server,
            ``http://...``.
        environment: Environment variables of the program; a few harmless ones unless given.
        start_seconds: Timeout for the start of the server.

    Raises:
        MissingExtra: The package mcp is missing.
        ConfigError: The server does not start, or does not answer.
    """

    def __init__(
        self, command: Sequence[str] | str, environment: dict[str, str] | None = None, start_seconds: float = 60.0
    ) -> None:
        if not command or (isinstance(command, str) and not command.startswith(_ADDRESSES)):
            raise ConfigError(
                "an MCP server is a command such as ['python', 'server.py'] or an address http://..., got "
                f"{command!r:.200}."
            )
        if importlib.util.find_spec("mcp") is None:
            raise missing_extra("an MCP server", "mcp", "mcp")
        self._command, self._environment, self._start_seconds = command, environment, start_seconds
        self._restarting = threading.Lock()
        self._start()

    def _start(self) -> None:
        command, start_seconds = self._command, self._start_seconds
        self._loop = asyncio.new_event_loop()
        self._ready: Future[list[Tool]] = Future()
        self._task = self._loop.create_task(self._session())
        self._thread = threading.Thread(target=self._serve, name="MCP server", daemon=True)
        self._thread.start()
        try:
            self._tools = self._ready.result(start_seconds)
        except TimeoutError:
            self.close()
            raise ConfigError(f"the MCP server {command} has said nothing for {start_seconds:g} seconds.") from None
        except Exception as error:  # any failure of an external program at its start
            self.close()
            found = _innermost(error)
            if isinstance(found, ConfigError):
                raise found from error
            raise ConfigError(
                f"the MCP server {command!r:.200} does not start, or it ended at once ({found!r:.300}). Run the "
                "command in a shell to see why, with the Python that has the server's packages, such as mcp."
            ) from error

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # reported to the waiting caller
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._cancel_calls()
            self._loop.close()

    def _cancel_calls(self) -> None:
        """Cancel the calls that wait for an answer of a server that has ended."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=_CANCEL_SECONDS))

    async def _session(self) -> None:
        from mcp import ClientSession

        async with self._connection() as (reader, writer, *_), ClientSession(reader, writer) as session:
            self._client = session
            await session.initialize()
            listed = await session.list_tools()
            if len(listed.tools) > _MOST_TOOLS:
                raise ConfigError(f"an MCP server may offer {_MOST_TOOLS} tools, got {len(listed.tools)}.")
            self._ready.set_result([self._tool(each) for each in listed.tools])
            await asyncio.Event().wait()

    def _connection(self) -> Any:
        """Return the streams to the server, as a context manager."""
        if isinstance(self._command, str):
            from mcp.client.streamable_http import streamable_http_client

            return streamable_http_client(self._command)
        from mcp.client.stdio import StdioServerParameters, stdio_client

        program, *arguments = self._command
        return stdio_client(StdioServerParameters(command=program, args=arguments, env=self._environment))

    def _tool(self, found: Any) -> Tool:
        async def call(**arguments: Any) -> str:
            asked = self._asked(lambda: self._client.call_tool(found.name, arguments))
            try:
                return _text(await asyncio.wrap_future(asked))
            except asyncio.CancelledError:
                if self._task.done():
                    raise self._down() from None
                raise

        schema = getattr(found, "inputSchema", None) or getattr(found, "input_schema", {})
        description = harmless(cut(" ".join((found.description or "").split()), _LONGEST_DESCRIPTION))
        if len(json.dumps(schema)) > _LONGEST_SCHEMA:
            raise ConfigError(
                f"the schema of the MCP tool {found.name!r:.80} has more than {_LONGEST_SCHEMA} characters."
            )
        return Tool(found.name, description, schema, call, ready=self.require_alive)

    def _asked(self, request: Callable[[], Awaitable[Any]]) -> Future[Any]:
        """Send a request from the thread of the connection.

        Raises:
            ServerDown: The connection has ended.
        """

        async def ask() -> Any:
            return await request()

        question = ask()
        try:
            return asyncio.run_coroutine_threadsafe(question, self._loop)
        except RuntimeError as error:  # the loop is closed
            question.close()
            raise self._down() from error

    def _down(self) -> ServerDown:
        return ServerDown(f"the MCP server {self._command!r:.200} has ended.")

    def require_alive(self) -> None:
        """Check that the server answers, at the start of an episode; restart it if it does not.

        Raises:
            ServerDown: It did not answer. Where it could be restarted, the next episode has it.
        """
        with self._restarting:
            if self._answers():
                return
            self.close()
            try:
                self._start()
            except ConfigError as error:
                raise ServerDown(f"the MCP server has ended, and cannot be restarted: {error}") from error
        raise ServerDown(f"the MCP server {self._command!r:.200} had ended, and was restarted: reset once more.")

    def _answers(self) -> bool:
        question = None
        try:
            question = self._asked(lambda: self._client.send_ping())
            question.result(_PING_SECONDS)
        except Exception as error:  # any failure of an external program
            if question is not None:
                question.cancel()
            return getattr(getattr(error, "error", None), "code", 0) == _NO_METHOD
        return True

    def tools(self) -> list[Tool]:
        """Return the tools that the server offers."""
        return list(self._tools)

    def close(self) -> None:
        """End the server; calling it again has no effect."""
        if self._thread.is_alive():
            stop: Callable[[], Any] = self._task.cancel
            with contextlib.suppress(RuntimeError):  # it has just closed its loop by itself
                self._loop.call_soon_threadsafe(stop)
            self._thread.join(10)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server."""
        self.close()


class ToolError(RuntimeError):
    """An error reported by a server's tool."""


def _text(result: Any) -> str:
    parts = [part.text if hasattr(part, "text") else f"[{getattr(part, 'type', 'part')}]" for part in result.content]
    text = "\n".join(map(str, parts))
    if getattr(result, "isError", False) or getattr(result, "is_error", False):
        raise ToolError(text)
    return text


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def server_at(place: str) -> McpServer:
    """Return the server that a command line or an address names; one for all environments of this process.

    Raises:
        ConfigError: It is not a command line, or the server does not start.
    """
    return _server(place, os.getpid())


@lru_cache(maxsize=16)
def _server(place: str, _pid: int) -> McpServer:
    if place.startswith(_ADDRESSES):
        return McpServer(place)
    try:
        command = shlex.split(place)
    except ValueError as error:
        raise ConfigError(f"mcp: needs a command line, got {place!r:.200}: {error}.") from error
    return McpServer(command)
