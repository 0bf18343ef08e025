"""MCP over streamable HTTP: a message is a POST to ``/mcp`` with one answer of JSON; each session plays by itself."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from turngym.trainers.integrations.mcp_server.protocol import Message, answered
from turngym.trainers.integrations.mcp_server.session import EnvSession
from turngym.web.access import denial

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
PATH = "/mcp"
_MOST_BYTES = 2**20
_SESSION = "mcp-session-id"


class McpApp:
    """An environment as tools, as an ASGI application.

    Args:
        make: Makes a session.
        token: What clients send as ``Authorization: Bearer TOKEN``; without one only the loopback is served.
        most: Sessions at once.
    """

    def __init__(self, make: Callable[[], EnvSession], token: str = "", most: int = 64) -> None:
        self._make, self._token, self._most = make, token, most
        self._sessions: dict[str, EnvSession] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI says."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.close()
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "http":
            headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
            status, content, session = await self._answer(scope, headers, receive)
            await send_message(send, status, content, session)

    async def _answer(self, scope: Scope, headers: dict[str, str], receive: Receive) -> tuple[int, Message | None, str]:
        """Return status, content and the id of a new session."""
        refused = denial(
            self._token, headers.get("host", ""), headers.get("origin", ""), headers.get("authorization", "")
        )
        if refused is not None:
            return refused.status, {"error": refused.detail}, ""
        if scope["path"] != PATH:
            return 404, {"error": f"only {PATH} is served"}, ""
        id = headers.get(_SESSION, "")
        if scope["method"] == "DELETE" and id in self._sessions:
            self._sessions.pop(id).close()
            return 200, {}, ""
        if scope["method"] != "POST":
            return 405, {"error": "messages are sent by POST"}, ""
        try:
            message = json.loads(await _body(receive))
        except (ValueError, RecursionError):
            return 400, {"error": f"a message is JSON of at most {_MOST_BYTES} bytes"}, ""
        if isinstance(message, dict) and message.get("method") == "initialize":
            if len(self._sessions) >= self._most:
                return 503, {"error": f"{self._most} sessions are open, the limit: end one"}, ""
            id = secrets.token_hex(16)
            self._sessions[id] = self._make()
            return 200, await answered(message, self._sessions[id]), id
        if id not in self._sessions:
            return 404 if id else 400, {"error": "there is no such session: send initialize first"}, ""
        answer = await answered(message, self._sessions[id])
        return (202 if answer is None else 200), answer, ""

    def close(self) -> None:
        """End all sessions."""
        while self._sessions:
            self._sessions.popitem()[1].close()


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
