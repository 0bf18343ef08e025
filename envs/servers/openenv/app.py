"""A server that OpenEnv's clients (openenv 0.10) understand, for any environment of turngym; openenv is not needed.

One process holds many sessions. A session is one WebSocket connection to ``/ws``, or a name of the client's choice in
``POST /reset`` and ``POST /step``. Environments run in threads, never on the event loop: one that hangs blocks neither
other sessions nor the server. An error ends only the episode of its own session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from turngym.envs.servers.openenv.http import About, Answer, HttpSide, Receive, Scope, Send, require_served
from turngym.envs.servers.openenv.messages import Refusal, dump, read_message
from turngym.envs.servers.openenv.sessions import Limits, Session, Sessions, nothing
from turngym.web.access import denial
from turngym.web.asgi_server import belongs_to

_STATUS = {"CAPACITY_REACHED": 503, "VALIDATION_ERROR": 422, "INVALID_JSON": 400, "SESSION_ERROR": 409}


class OpenEnvApp:
    """The server as an ASGI application: run it with uvicorn, or any other server of ASGI 3 with WebSockets.

    Args:
        make: Makes one environment; called once for each session, in a thread.
        about: Description that clients are given.
        limits: Limits.
        token: Token that clients send as ``Authorization: Bearer TOKEN``; empty for none. Without a token only loopback
            requests are accepted, and no cross-origin ones.
    """

    def __init__(self, make: Callable[[], Any], about: About, limits: Limits | None = None, token: str = "") -> None:
        self.sessions = Sessions(make, limits or Limits())
        self._token = token
        self._http_side = HttpSide(about, self.sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI says."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._websocket(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        reaper = asyncio.create_task(self._http_side.reap())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        reaper.cancel()
        await self.sessions.close_all()
        await send({"type": "lifespan.shutdown.complete"})

    # Who may ask.

    def _refusal(self, scope: Scope) -> Answer | None:
        """Return why a request is refused, None if it is accepted."""
        headers = {name.decode("latin1").lower(): value.decode("latin1") for name, value in scope["headers"]}
        found = denial(self._token, *[headers.get(name, "") for name in ("host", "origin", "authorization")])
        if found is not None:
            return Answer(*found)
        return None if belongs_to(scope, "client") else Answer(503, "too many connections are in use: try again later")

    # Sessions over a WebSocket.

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        refusal = self._refusal(scope) or (None if scope["path"] == "/ws" else Answer(404, "the WebSocket is /ws"))
        if refusal is not None:
            await _deny(scope, send, refusal)
            return
        await send({"type": "websocket.accept"})
        try:
            session = self.sessions.open()
        except Refusal as full:
            await _last_words(send, full, 1013)
            return
        try:
            await self._converse(session, receive, send)
        finally:
            await asyncio.shield(self.sessions.close(session))

    async def _converse(self, session: Session, receive: Receive, send: Send) -> None:
        idle = self.sessions.limits.idle_seconds
        while True:
            try:
                left = 0.0 if session.is_replaced else session.last_step + idle - time.monotonic()
                async with asyncio.timeout(left) as limit:
                    session.on_replaced = partial(limit.reschedule, 0.0)
                    event = await receive()
                if session.is_replaced:
                    raise TimeoutError
            except TimeoutError:
                why = f"took no step for {idle:g} seconds and is ended"
                why = "was idle, and another one has taken its place" if session.is_replaced else why
                await _last_words(send, Refusal("SESSION_ERROR", f"the session {why}: connect again."), 1001)
                return
            finally:
                session.on_replaced = nothing
            if event["type"] == "websocket.disconnect":
                return
            raw = event.get("text")
            try:
                kind, data = read_message(raw if raw is not None else event.get("bytes") or b"")
            except Refusal as refusal:
                answer = refusal.message()
            else:
                if kind == "close":
                    await send({"type": "websocket.close", "code": 1000})
                    return
                answer = await session.answer(kind, data)
            try:
                await send({"type": "websocket.send", "text": dump(answer)})
            except OSError:  # the client has gone
                return
            await asyncio.sleep(0)  # one message of each client in a step of the event loop

    # Requests over HTTP.

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            require_served(scope)
            refusal = None if scope["path"] == "/health" else self._refusal(scope)
            if refusal is not None:
                raise refusal
            content, status = await self._http_side.respond(scope, receive), 200
        except Answer as answer:
            content, status = {"detail": answer.detail}, answer.status
        except Refusal as error:
            content, status = {"detail": error.message()["data"]}, _STATUS.get(error.code, 500)
        body = dump(content).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def _deny(scope: Scope, send: Send, answer: Answer) -> None:
    """Refuse a WebSocket before it is accepted, with an HTTP answer if the ASGI server supports it."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"application/json")]
    await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": dump({"detail": answer.detail}).encode()})


async def _last_words(send: Send, refusal: Refusal, code: int) -> None:
    with suppress(OSError):  # the client has gone
        await send({"type": "websocket.send", "text": dump(refusal.message())})
        await send({"type": "websocket.close", "code": code})
