"""Sending answers, whole or in parts, to clients that may go away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from turngym.agents.gateway.calls import SampledCall
from turngym.agents.gateway.conversations.messages import CallRequest
from turngym.agents.gateway.dialects.base import Event, Protocol, Stream, Writing
from turngym.agents.gateway.episode import GatewayEpisode
from turngym.agents.gateway.refusal import Refusal
from turngym.agents.gateway.service import Gateway

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Write = Callable[[int, Callable[[], bytes]], Awaitable[bytes]]
"""Returns what some work writes, in a thread if its weight is large."""
_LOGPROB_WEIGHT = 256
_CHOICE_WEIGHT = 256


class Disconnected(Exception):
    """The client has gone."""


class Answering:
    """Answers requests, and notices whether the client received the answer.

    An answer that its client did not wait for is sampled to its end: a retry may ask for it.

    Args:
        gateway: Component that answers.
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
        size: int = 0,
    ) -> None:
        """Answer a request.

        Args:
            episode: The episode.
            agent: Name of the agent.
            protocol: Format of the answer.
            request: The request.
            receive: Receives the message that the client has disconnected.
            send: Sends the answer.
            size: Bytes of the request.

        Raises:
            Refusal: It is not answered, and nothing has been sent.
            Disconnected: The client has gone.
        """
        repeats = self.gateway.repeats(episode, request)
        with episode.repeat(self.gateway.limits, request.choices if repeats else 0):
            await self._answer(episode, agent, protocol, request, receive, send, size if request.extra else 0)

    async def _answer(
        self,
        episode: GatewayEpisode,
        agent: str,
        protocol: Protocol,
        request: CallRequest,
        receive: Receive,
        send: Send,
        repeated: int,
    ) -> None:
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
            write = partial(self.gateway.offload.run, episode)
            received = partial(self.gateway.delivered, episode)
            if request.stream:
                await _Sending(protocol, writing, send, received, write, repeated).run(task, gone, parts)
                return
            await _first(task, gone)
            calls = task.result()
            weight = repeated + _weight(request, calls)
            body = await write(weight, lambda: json.dumps(protocol.write(writing, calls)).encode())
            _require_there(gone)
            received(calls)  # before the client can know of it
            await _send_whole(send, body)
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
    _require_there(gone)


def _require_there(gone: asyncio.Task[None]) -> None:
    if gone.done():
        raise Disconnected


def _weight(request: CallRequest, calls: Sequence[SampledCall]) -> int:
    """Return about how many characters the writing of some answers costs."""
    texts = sum(len(call.message.text) + _CHOICE_WEIGHT for call in calls) + _echoed(request)
    return texts + sum(len(call.completion_ids) for call in calls) * _LOGPROB_WEIGHT * request.logprobs


def _echoed(request: CallRequest) -> int:
    return len(request.prompt or ()) * request.choices if request.echo else 0


async def _send_whole(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
    except OSError as error:
        raise Disconnected from error


class _Sending:
    """Sends an answer as a stream of events."""

    def __init__(
        self,
        protocol: Protocol,
        writing: Writing,
        send: Send,
        received: Callable[[list[SampledCall]], None],
        write: _Write,
        repeated: int,
    ) -> None:
        self._protocol, self._writing, self._send, self._received = protocol, writing, send, received
        self._write, self._repeated = write, repeated
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
            _require_there(gone)
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
        stream = await self._begun(calls[0].id)
        weight = self._repeated + _weight(self._writing.request, calls)
        rest = await self._write(weight, lambda: b"".join(self._rest(stream, calls)))
        _require_there(gone)
        self._received(calls)
        await self._put(rest)
        await self._end()

    def _rest(self, stream: Stream, calls: Sequence[SampledCall]) -> Iterator[Event]:
        """Yield what has not been sent of finished answers."""
        for call in calls:
            if delta := self._texts[call.choice].rest(call.message.text):
                yield from stream.text(call.choice, delta)
        yield from stream.end(calls)

    async def _begun(self, id: str) -> Stream:
        if self._stream is None:
            stream = self._stream = self._protocol.stream(self._writing, id)
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
            with suppress(OSError):
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            weight = self._repeated + _echoed(self._writing.request)
            await self._put(await self._write(weight, lambda: b"".join(stream.start())))
        return self._stream

    async def _more(self, id: str, choice: int, delta: str) -> None:
        if delta:
            for event in (await self._begun(id)).text(choice, delta):
                await self._put(event)

    async def _put(self, events: bytes) -> None:
        try:
            await self._send({"type": "http.response.body", "body": bytes(events), "more_body": True})
        except OSError as error:
            raise Disconnected from error

    async def _end(self) -> None:
        with suppress(OSError):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class StableText:
    r"""Returns what is new in a growing text.

    The end of a text is held back while it may be the first bytes of a character, or the start of a stop word.

    Args:
        words: Stop words.

    >>> text = StableText(["END"])
    >>> text.more("say E"), text.more("say EN\ufffd"), text.more("say ENo"), text.rest("say ENo!")
    ('say ', '', 'ENo', '!')
    """

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._words = tuple(words)
        self._sent = 0

    def more(self, text: str) -> str:
        """Return the new part of a text that is not finished."""
        places = [place for place in map(text.find, self._words) if place >= 0]
        end = min(places, default=len(text.rstrip("\ufffd")))
        end = min(end, *(self._begun(text[:end], word) for word in self._words)) if self._words else end
        return self._take(text, end)

    def rest(self, text: str) -> str:
        """Return the rest of the finished text."""
        return self._take(text, len(text))

    def _take(self, text: str, end: int) -> str:
        new = text[self._sent : end]
        self._sent = max(self._sent, end)
        return new

    @staticmethod
    def _begun(text: str, word: str) -> int:
        """Return where a word starts whose first part the text ends with."""
        for length in range(min(len(word) - 1, len(text)), 0, -1):
            if text.endswith(word[:length]):
                return len(text) - length
        return len(text)
