"""Talks to an application of ASGI without a server: one WebSocket, or one request over HTTP."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any, Self

Event = MutableMapping[str, Any]
Headers = dict[str, str]


def scope_of(kind: str, path: str, headers: Headers | None = None, method: str = "GET", query: str = "") -> Event:
    given = {"host": "127.0.0.1:8000", **(headers or {})}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    return {"type": kind, "path": path, "method": method, "headers": pairs, "query_string": query.encode()}


class Socket:
    """A client's side of a WebSocket; use it as an asynchronous context."""

    def __init__(self, app: Any, headers: Headers | None = None, path: str = "/ws") -> None:
        self._app, self._scope = app, scope_of("websocket", path, headers)
        self._to: asyncio.Queue[Event] = asyncio.Queue()
        self._back: asyncio.Queue[Event] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._to.put_nowait({"type": "websocket.connect"})
        self.task = asyncio.create_task(self._app(self._scope, self._to.get, self._back.put))
        self.greeting = await self._back.get()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._to.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self.task

    def say(self, message: Any) -> None:
        raw = message if isinstance(message, str) else json.dumps(message)
        self._to.put_nowait({"type": "websocket.receive", "text": raw})

    async def hear(self) -> Any:
        """Return the next message of the server, or the code that it closes with."""
        event = await self._back.get()
        return event["code"] if event["type"] == "websocket.close" else json.loads(event["text"])

    async def ask(self, kind: str, **data: Any) -> Any:
        self.say({"type": kind, "data": data} if kind != "state" else {"type": kind})
        return await self.hear()

    async def act(self, text: str) -> Any:
        return await self.ask("step", message=text)


async def request(
    app: Any, method: str, path: str, content: Any = None, headers: Headers | None = None, query: str = ""
) -> tuple[int, Any]:
    """Return status and content of the answer to a request."""
    status, raw = await raw_request(app, method, path, content, headers, query)
    return status, json.loads(raw) if raw else None


async def raw_request(
    app: Any, method: str, path: str, content: Any = None, headers: Headers | None = None, query: str = ""
) -> tuple[int, bytes]:
    """Return status and bytes of the answer to a request."""
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    half = len(body) // 2
    events = [
        {"type": "http.request", "body": body[:half], "more_body": True},
        {"type": "http.request", "body": body[half:], "more_body": False},
    ]
    sent: list[Event] = []

    async def receive() -> Event:
        return events.pop(0)

    async def send(event: Event) -> None:
        sent.append(event)

    await app(scope_of("http", path, headers, method, query), receive, send)
    raw = b"".join(event.get("body", b"") for event in sent)
    return int(sent[0]["status"]), raw
