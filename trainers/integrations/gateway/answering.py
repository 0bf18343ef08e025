"""Sending answers, whole or in parts, to clients that may go away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any

from turngym.trainers.integrations.gateway.calls import SampledCall
from turngym.trainers.integrations.gateway.dialects.base import Event, Protocol, Stream, Writing
from turngym.trainers.integrations.gateway.episode import GatewayEpisode
from turngym.trainers.integrations.gateway.messages import CallRequest
from turngym.trainers.integrations.gateway.refusal import Refusal
from turngym.trainers.integrations.gateway.service import Gateway
from turngym.trainers.integrations.gateway.streaming import StableText

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Disconnected(Exception):
    """The client has gone."""


class Answering:
    """Answers requests, and notices whether the client received the answer.

    An answer that its client did not wait for is sampled to its end: a retry may ask for it.

    Args:
        gateway: What answers.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self._tasks: set[asyncio.Task[list[SampledCall]]] = set()

    async def answer(
        self,
        episode: GatewayEpisode,
        agent: str,
        protocol: Protocol,
        request: CallRequest,
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer a request.

        Raises:
            Refusal: It is not answered, and nothing has been sent.
            Disconnected: The client has gone.
        """
        parts: asyncio.Queue[tuple[str, int, str]] = asyncio.Queue()
        streams_text = request.stream and not (request.tools and request.reads_calls)

        def on_text(id: str, choice: int, text: str) -> None:
            parts.put_nowait((id, choice, text))

        work = self.gateway.answer(episode, agent, request, on_text if streams_text else None)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        gone = asyncio.create_task(_gone(receive))
        try:
            writing = Writing(request, self.gateway.name, self.gateway.renderer)
            if request.stream:
                received = partial(self.gateway.delivered, episode)
                await _Sending(protocol, writing, send, received).run(task, gone, parts)
            else:
                await _first(task, gone)
                self.gateway.delivered(episode, task.result())  # before the client can know of it
                await _send_whole(send, protocol.write(writing, task.result()))
        finally:
            gone.cancel()

    def _done(self, task: asyncio.Task[list[SampledCall]]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a client that has gone does not read it


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(task: asyncio.Future[Any], gone: asyncio.Task[None]) -> None:
    """Wait for something.

    Raises:
        Disconnected: The client has gone before.
    """
    await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
    if gone.done():
        raise Disconnected


async def _send_whole(send: Send, content: dict[str, Any]) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except OSError as error:
        raise Disconnected from error


class _Sending:
    """Sends an answer as a stream of events."""

    def __init__(
        self, protocol: Protocol, writing: Writing, send: Send, received: Callable[[list[SampledCall]], None]
    ) -> None:
        self._protocol, self._writing, self._send, self._received = protocol, writing, send, received
        self._texts = [StableText(writing.request.stop) for _ in range(writing.request.choices)]
        self._stream: Stream | None = None

    async def run(
        self,
        task: asyncio.Task[list[SampledCall]],
        gone: asyncio.Task[None],
        parts: asyncio.Queue[tuple[str, int, str]],
    ) -> None:
        while not task.done():
            part = asyncio.ensure_future(parts.get())
            await asyncio.wait([task, gone, part], return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                part.cancel()
                raise Disconnected
            if part.done():
                id, choice, text = part.result()
                await self._more(id, choice, self._texts[choice].more(text))
            part.cancel()
        try:
            calls = task.result()
        except Refusal as refusal:
            if self._stream is None:
                raise
            dialect = self._writing.request.dialect
            await self._put(Event.of(refusal.body(dialect), "error"))
            await self._end()
            return
        for call in calls:
            await self._more(call.id, call.choice, self._texts[call.choice].rest(call.message.text))
        stream = await self._begun(calls[0].id)
        self._received(calls)
        for event in stream.end(calls):
            await self._put(event)
        await self._end()

    async def _begun(self, id: str) -> Stream:
        if self._stream is None:
            self._stream = self._protocol.stream(self._writing, id)
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
            with suppress(OSError):
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            for event in self._stream.start():
                await self._put(event)
        return self._stream

    async def _more(self, id: str, choice: int, delta: str) -> None:
        if delta:
            for event in (await self._begun(id)).text(choice, delta):
                await self._put(event)

    async def _put(self, event: Event) -> None:
        try:
            await self._send({"type": "http.response.body", "body": bytes(event), "more_body": True})
        except OSError as error:
            raise Disconnected from error

    async def _end(self) -> None:
        with suppress(OSError):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
