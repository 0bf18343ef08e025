"""Limits on tiny chunks and frames, each of which costs a server as much as a large one.

Clients may send them: a body that is written piece by piece (``json.iterencode``) has thousands. Beyond the first of a
request, connections rest between them, so that those of all connections take a small share of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_RATE = 10_000.0
"""Tiny parts a second, of all connections: a fifth of a processor."""
_FREE_CHUNKS = 32
"""Of a request; clients that send a body in pieces of a file or a page have fewer."""
_FREE_FRAMES = 1000
"""Of a connection, such as the pings of hours."""
_TINY = 1024
"""Bytes; parts of fewer on average are tiny."""
_CONTROL = 8
"""Opcodes of WebSocket from this one on are of frames without a message."""


class TinyPace:
    """Spreads the tiny parts of all connections of a server over time."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def rest(self, now: float, parts: int) -> float:
        """Return how long a connection rests after some parts.

        >>> pace = TinyPace()
        >>> pace.rest(5.0, 1000), pace.rest(5.0, 1000), pace.rest(9.0, 1000)
        (0.1, 0.2, 0.1)
        """
        self._free_at = max(self._free_at, now) + parts / _RATE
        return round(self._free_at - now, 6)


class TinyParts:
    """Counts the tiny parts of one connection: chunks of a body, or frames that are not a whole message."""

    def __init__(self) -> None:
        self._count = self._bytes = self._new = 0
        self._free = _FREE_CHUNKS

    def take(self) -> int:
        """Return how many parts were read since the last call, if there are many and they are tiny; else 0."""
        new, self._new = self._new, 0
        return new if self._count > self._free and self._bytes < _TINY * self._count else 0

    def chunks(self, next_event: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function of h11 that returns the next event, and counts chunks."""

        def counted() -> Any:
            event = next_event()
            if hasattr(event, "method"):
                self._count = self._bytes = 0
            elif hasattr(event, "chunk_start"):
                self._add(event.chunk_start, len(event.data))
            return event

        return counted

    def frames(self, events: Callable[[], Iterable[Any]]) -> Callable[[], list[Any]]:
        """Return a function of websockets that returns the events since the last call, and counts frames."""
        self._count = self._bytes = 0
        self._free = _FREE_FRAMES

        def counted() -> list[Any]:
            found = list(events())
            parts = [each for each in found if hasattr(each, "opcode") and (each.opcode >= _CONTROL or not each.fin)]
            self._add(len(parts), sum(len(each.data) for each in parts))
            return found

        return counted

    def _add(self, count: int, size: int) -> None:
        self._count += count
        self._new += count
        self._bytes += size
