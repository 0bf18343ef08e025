"""Reading requests of HTTP from a socket: until a deadline, with heads of a bounded size."""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

PIECE = 2**16
"""Bytes of a body that are read at once; one that is no longer is not counted."""
_MOST_HEAD = 2**16
"""Bytes of a request's first line and headers in all; one of more than ``_SMALL_HEAD`` is counted as so many."""
_SMALL_HEAD = 2**13
_FREE_READS, _TINY, _REST_SECONDS = 32, 64, 1.0


class UntilDeadline(io.RawIOBase):
    """Reads from a socket until a deadline, even if a client sends byte by byte, which then arrives in larger parts."""

    def __init__(self, connection: socket.socket, turn: threading.Lock) -> None:
        self._connection, self._turn = connection, turn
        self.start(0.0)

    def start(self, seconds: float) -> None:
        """Set the deadline."""
        self._end = time.monotonic() + seconds
        self._reads = self._bytes = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived, or wait for the next bytes."""
        if self._reads > _FREE_READS and self._bytes < _TINY * self._reads:
            time.sleep(max(min(_REST_SECONDS, self._end - time.monotonic()), 0.0))
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left)
        if self._bytes > PIECE:  # threads that wait for their turn take no time from others
            self._connection.recv(1, socket.MSG_PEEK)
            with self._turn:
                count = self._connection.recv_into(buffer)
        else:
            count = self._connection.recv_into(buffer)
        self._reads += 1
        self._bytes += count
        return count


class RequestReader(io.BufferedReader):
    """Reads requests, whose lines are those of heads: together they have at most 64 KiB.

    Args:
        raw: Source to read.
        hold: Called with the bytes to count for a large head.
    """

    def __init__(self, raw: UntilDeadline, hold: Callable[[int], None]) -> None:
        super().__init__(raw)
        self._hold = hold
        self.start()

    def start(self) -> None:
        """Expect the head of a request."""
        self._left = _MOST_HEAD
        self._is_held = False

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line of the head.

        Raises:
            LineTooLong: The head is too large; ``BaseHTTPRequestHandler`` answers with status 431.
        """
        if self._left <= 0:
            raise http.client.LineTooLong("head of the request")
        if not self._is_held and self._left < _MOST_HEAD - _SMALL_HEAD:
            self._is_held = True
            self._hold(_MOST_HEAD)
        line = super().readline(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(line)
        return line
