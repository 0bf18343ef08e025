"""MCP over streamable HTTP: a message is a POST to ``/mcp`` with one answer of JSON; each session plays by itself."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from turngym.agents.gateway.mcp.protocol import Message, answered
from turngym.agents.gateway.mcp.session import EnvSession, Episodes
from turngym.envs.servers.hosting import HostLimits
from turngym.envs.servers.threads import Threads
from turngym.web.access import denial
from turngym.web.asgi_server import belongs_to

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
PATH = "/mcp"
_MOST_BYTES = 2**20
_SESSION = "mcp-session-id"
_REAP_SECONDS = 30.0
_SESSION_LIMITS = HostLimits(max_sessions=64)


class McpApp:
    """An environment as tools, as an ASGI application.

    Environments run in threads. A call that takes too long ends the episode of its session, and no other; a session
    that is idle for long is ended.

    Args:
        make: Makes an environment.
        episodes: Their episodes.
        token: Token that clients send as ``Authorization: Bearer TOKEN``; without one only loopback is served.
        limits: Limits on sessions, time, and environments that hang.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        episodes: Episodes,
        token: str = "",
        limits: HostLimits = _SESSION_LIMITS,
    ) -> None:
        self._make, self._episodes, self._token, self._limits = make, episodes, token, limits
        self._threads = Threads(limits.threads or limits.max_sessions)
        self._sessions: dict[str, EnvSession] = {}
        self._ending: dict[EnvSession, asyncio.Task[None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI says."""
        if scope["type"] == "lifespan":
            await receive()
            reaper = asyncio.create_task(self._reap())
            await send({"type": "lifespan.startup.complete"})
            await receive()
            reaper.cancel()
            await self.close()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "http":
            headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
            status, content, session = await self._answer(scope, headers, receive)
            with suppress(OSError):  # the client has gone
                await send_message(send, status, content, session)

    async def _answer(self, scope: Scope, headers: dict[str, str], receive: Receive) -> tuple[int, Message | None, str]:
        """Return status, content and the id of a new session."""
        refused = denial(
            self._token, headers.get("host", ""), headers.get("origin", ""), headers.get("authorization", "")
        )
        if refused is not None:
            return refused.status, {"error": refused.detail}, ""
        if not belongs_to(scope, "client"):
            return 503, {"error": "too many connections are in use: try again later"}, ""
        if scope["path"] != PATH:
            return 404, {"error": f"only {PATH} is served"}, ""
        id = headers.get(_SESSION, "")
        if scope["method"] == "DELETE" and id in self._sessions:
            self._end(id)
            return 200, {}, ""
        if scope["method"] != "POST":
            return 405, {"error": "messages are sent by POST"}, ""
        try:
            message = json.loads(await _body(receive))
        except (ValueError, RecursionError):
            return 400, {"error": f"a message is JSON of at most {_MOST_BYTES} bytes"}, ""
        if isinstance(message, dict) and message.get("method") == "initialize":
            if not await self._has_room():
                return 503, {"error": f"{self._limits.max_sessions} sessions are in use, the limit: end one"}, ""
            id = secrets.token_hex(16)
            self._sessions[id] = EnvSession(self._make, self._episodes, self._threads, self._limits)
            return 200, await answered(message, self._sessions[id]), id
        if id not in self._sessions:
            return 404 if id else 400, {"error": "there is no such session: send initialize first"}, ""
        answer = await answered(message, self._sessions[id])
        return (202 if answer is None else 200), answer, ""

    async def _has_room(self) -> bool:
        """Return whether there is room for a session, if need be after the end of one that has been idle."""
        if len(self._sessions) + len(self._ending) < self._limits.max_sessions:
            return True
        for ending in self._end_idle(self._limits.spare_seconds, most=1):
            await asyncio.wait([ending])
        return len(self._sessions) + len(self._ending) < self._limits.max_sessions

    def _end_idle(self, seconds: float, most: int | None = None) -> list[asyncio.Task[None]]:
        """End sessions that have been idle for some time, the longest idle ones first."""
        now = time.monotonic()
        idle = [(each.last_step, id) for id, each in self._sessions.items() if not each.is_busy]
        return [self._end(id) for _, id in sorted(each for each in idle if now - each[0] > seconds)[:most]]

    def _end(self, id: str) -> asyncio.Task[None]:
        """Forget a session, and close it in the background; it takes its place until the call under way is over."""
        session = self._sessions.pop(id)
        self._ending[session] = task = asyncio.create_task(session.close())
        task.add_done_callback(lambda _: self._ending.pop(session))
        return task

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(self._limits.idle_seconds / 2, _REAP_SECONDS))
            self._end_idle(self._limits.idle_seconds)

    async def close(self) -> None:
        """End all sessions, and the threads."""
        for id in [*self._sessions]:
            self._end(id)
        await asyncio.gather(*self._ending.values())
        self._threads.close()


async def _body(receive: Receive) -> bytes:
    data, is_more = b"", True
    while is_more:
        event = await receive()
        data += event.get("body", b"")
        is_more = event.get("more_body", False)
        if len(data) > _MOST_BYTES:
            raise ValueError("too long")
    return data


async def send_message(send: Send, status: int, content: Message | None, session: str = "") -> None:
    """Send an answer.

    Args:
        send: As ASGI has it.
        status: Status of HTTP.
        content: The content; None for none.
        session: Id of a new session.
    """
    body = b"" if content is None else json.dumps(content).encode()
    headers = [(b"content-type", b"application/json")] if content is not None else []
    headers += [(b"content-length", str(len(body)).encode())]
    headers += [(_SESSION.encode(), session.encode())] if session else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
