"""The HTTP side of a server for OpenEnv's clients: metadata, and named sessions for clients without WebSockets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from turngym.envs.servers.openenv.messages import (
    LONGEST_ID,
    Body,
    Refusal,
    invalid,
    openapi,
    schemas,
)
from turngym.envs.servers.openenv.sessions import Session, Sessions

JSON = Any
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_MESSAGE = 1 << 20
PATHS = {
    ("get", "/health"): "Say that the server is well; needs no token.",
    ("get", "/metadata"): "Name and description of the environment, and its instructions.",
    ("get", "/schema"): "JSON schemas of action, observation and state.",
    ("get", "/openapi.json"): "This document.",
    ("post", "/reset"): "Begin an episode; with a session_id, POST /step continues with it.",
    ("post", "/step"): "Take a turn in the episode of a session_id.",
    ("get", "/state"): "The episode of ?session_id=, and how many turns it has taken.",
    ("post", "/mcp"): "JSON-RPC; the environment offers no tools.",
}
_REAP_SECONDS = 30.0


@dataclass(frozen=True)
class About:
    """A server's description of its environment.

    Args:
        name: Id of the environment.
        description: One sentence.
        instructions: Rules and answer format.
        version: Version of turngym.
        finds_action: Whether the environment finds an action in a whole answer.
    """

    name: str
    description: str
    instructions: str
    version: str
    finds_action: bool = False

    def metadata(self) -> Body:
        """Return the answer to ``/metadata``."""
        return {
            "name": self.name,
            "description": self.description,
            "readme_content": self.instructions,
            "version": self.version,
            "author": None,
            "documentation_url": None,
        }


class Answer(Exception):
    """An HTTP error response.

    Args:
        status: Status of HTTP.
        detail: Error.
    """

    def __init__(self, status: int, detail: JSON) -> None:
        super().__init__(status)
        self.status, self.detail = status, detail


class HttpSide:
    """Answers requests that may be answered.

    Args:
        about: Description of the environment.
        sessions: All sessions.
    """

    def __init__(self, about: About, sessions: Sessions) -> None:
        self._about, self._sessions = about, sessions
        self._named: dict[str, tuple[Session, asyncio.Lock]] = {}

    async def respond(self, scope: Scope, receive: Receive) -> JSON:
        """Return the content of the answer.

        Raises:
            Answer: It is not a success.
            Refusal: The same, in words of the protocol.
        """
        path, method = scope["path"], scope["method"]
        if path == "/health":
            return {"status": "healthy"}
        if path == "/mcp":
            return await _mcp(receive)
        if path == "/state":
            query = parse_qs(scope["query_string"].decode("latin1"))
            return self._find(query.get("session_id", [None])[-1])[0].state()
        if method != "POST":
            if path == "/schema":
                return schemas(self._about.finds_action)
            return self._about.metadata() if path == "/metadata" else openapi(self._about.name, PATHS)
        body = await _json(receive)
        return await (self._reset(body) if path == "/reset" else self._step(body))

    async def reap(self) -> None:
        """End idle named sessions in an endless loop; WebSocket sessions have their own timeouts."""
        idle = self._sessions.limits.idle_seconds
        while True:
            await asyncio.sleep(min(idle / 2, _REAP_SECONDS))
            now = time.monotonic()
            named = [(name, session) for name, (session, _) in self._named.items() if now - session.last_step > idle]
            for name, session in named:
                if name in self._named and not session.is_busy:
                    del self._named[name]
                    await self._sessions.close(session)

    async def _reset(self, body: Body) -> Body:
        name = body.pop("session_id", None)
        if name is None:  # a look at the first observation; nothing is kept
            session = self._sessions.open()
            try:
                return await session.reset(body)
            finally:
                await self._sessions.close(session)
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID:
            raise invalid(f"session_id must be a string of 1 to {LONGEST_ID} characters.", ["session_id"])
        if name not in self._named:
            self._named[name] = self._opened(name), asyncio.Lock()
        session, lock = self._find(name)
        async with lock:
            return await session.reset(body)

    def _opened(self, name: str) -> Session:
        """Return a new session that is named.

        Raises:
            Refusal: All are in use.
        """
        most = self._sessions.limits.max_named
        if len(self._named) >= most and not self._sessions.replace_idle(each for each, _ in self._named.values()):
            words = f"all {most} sessions with a name are in use: try again later, or use the WebSocket /ws."
            raise Refusal("CAPACITY_REACHED", words)
        session = self._sessions.open()
        session.on_replaced = partial(self._named.pop, name)
        return session

    async def _step(self, body: Body) -> Body:
        session, lock = self._find(body.get("session_id"))
        action = body.get("action")
        if not isinstance(action, dict):
            raise invalid('a step is {"session_id": NAME, "action": {"message": TEXT}}.', ["action"])
        async with lock:
            return await session.step(action)

    def _find(self, name: object) -> tuple[Session, asyncio.Lock]:
        if not isinstance(name, str) or name not in self._named:
            words = 'no such session: POST /reset with {"session_id": NAME} first, or use the WebSocket /ws.'
            raise Refusal("SESSION_ERROR", words)
        return self._named[name]


def require_served(scope: Scope) -> None:
    """Raise unless method and path are those of :data:`PATHS`.

    Raises:
        Answer: They are not.
    """
    path, method = scope["path"], scope["method"].lower()
    if ("get" if method == "head" else method, path) not in PATHS:
        is_known = path in [each for _, each in PATHS]
        raise Answer(405 if is_known else 404, f"{method.upper()} {path[:100]} is not served")


async def _body(receive: Receive) -> bytes:
    parts, size, is_more = [], 0, True
    while is_more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Answer(400, "the request broke off")
        parts.append(event.get("body", b""))
        size, is_more = size + len(parts[-1]), event.get("more_body", False)
        if size > LARGEST_MESSAGE:
            raise Answer(413, f"a request has at most {LARGEST_MESSAGE} bytes")
    return b"".join(parts)


async def _json(receive: Receive) -> Body:
    try:
        found = json.loads(await _body(receive) or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refusal("INVALID_JSON", f"Invalid JSON: {error}") from error
    if not isinstance(found, dict):
        raise invalid("a request is an object.", ())
    return found


async def _mcp(receive: Receive) -> Body:
    try:
        request = json.loads(await _body(receive))
        method, number = request["method"], request.get("id")
    except (ValueError, RecursionError):
        return _rpc_error(None, -32700, "Parse error")
    except (KeyError, TypeError, AttributeError):
        return _rpc_error(None, -32600, "Invalid request: it has no method")
    if method in ("tools/list", "tools/call"):
        return _rpc_error(number, -32603, "Environment does not support MCP")
    return _rpc_error(number, -32601, f"Method not found: {str(method)[:100]}")


def _rpc_error(number: JSON, code: int, message: str) -> Body:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
