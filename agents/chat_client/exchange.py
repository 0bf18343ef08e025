"""One request to a server over HTTP: a whole answer within a time limit, or a failure that has a kind.

Plain HTTP/1.1 from the standard library, one connection per request, so that requests can be counted exactly. Redirects
are not followed. Each failed request has a kind that can be counted: ``timeout``, ``connection``, ``malformed``,
``empty``, ``unfinished`` (the limit of tokens was reached before the completion began), or ``http_`` with the status;
``context``, if the prompt does not fit the model's context; or ``tools``, if the server rejects declared tools.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime

from turngym.agents.chat_client.config import Address
from turngym.text import printable

_CONNECT_SECONDS = 15.0
LARGEST_ANSWER = 32 * 2**20
_SHORTEST_SECRET = 16  # shorter keys, such as EMPTY, are placeholders
_RETRIED_STATUSES = frozenset({408, 409, 425, 429})
EMPTY = "empty"
"""Kind of a failure that is rarely worth a retry: the completion is blank."""
CONTEXT = "context"
"""Kind of a failure that is never retried: the prompt plus the requested answer exceed the model's context."""
TOOLS = "tools"
"""Kind of a failure that is never retried: the server, or its model, takes no declared tools."""
RATE_LIMIT = "http_429"
"""Kind of a failure that is retried once the rate limit of the server allows it."""
NO_CREDIT = "insufficient_quota"
"""Code of OpenAI's error where an account has no money left: it has the status of a rate limit, and no end."""
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
UNFINISHED = "unfinished"
"""Kind of a failure that is never retried: all tokens of an answer were spent on reasoning."""
_NOT_OF_REQUEST = frozenset({401, 403, 404, 408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|maximum prompt length|model's context length"
    r"|maximum model length|available context size|exceeds? the (?:model's )?(?:context|max(?:imum)? input)"
    r"|context window|exceeds the maximum number of tokens|prompt is too long|input is too long"
    r"|reduce the length of the (?:messages|prompt|input)|`?inputs`? tokens \+ `?max_new_tokens`?",
    re.IGNORECASE,
)


class CallFailed(Exception):
    """A request without a usable answer.

    Args:
        kind: Kind of failure.
        detail: Error message of the server or the connection, for display.
        is_retried: Whether retrying may help.
        retry_after: Seconds that the server asks to wait.
        tokens: Tokens read and written, if the server reported them.
        reasoning: Reasoning that came without a completion.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        is_retried: bool = True,
        retry_after: float = 0.0,
        tokens: tuple[int, int] | None = None,
        reasoning: str = "",
    ) -> None:
        detail = printable(detail, keep="\n")  # a server may send what a terminal would obey
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.is_retried = is_retried
        self.retry_after = retry_after
        self.tokens = tokens
        self.reasoning = reasoning


class _Watch:
    """Cuts a connection from another thread."""

    def __init__(self) -> None:
        self.socket: socket.socket | None = None
        self.has_expired = False
        self.is_cut = False

    def expire(self) -> None:
        self.has_expired = True
        self.cut()

    def cut(self) -> None:
        self.is_cut = True
        if self.socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self.socket.shutdown(socket.SHUT_RDWR)


class Exchange:
    """Sends requests to one server; safe to use from several threads.

    Args:
        address: Address of the server.
        key: Its key; empty sends none.
    """

    def __init__(self, address: Address, key: str = "") -> None:
        self.address = address
        self._key = key
        self._context = ssl.create_default_context() if address.is_secure else None
        self._watches: set[_Watch] = set()
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        self._opens = 0.0

    def send(self, method: str, path: str, body: bytes | None, timeout: float) -> bytes:
        """Send one request and return the content of its answer.

        Args:
            method: GET or POST.
            path: Path on the server.
            body: JSON; None for none.
            timeout: Seconds until the whole answer must have arrived.

        Raises:
            CallFailed: There was no usable answer.
        """
        watch = _Watch()
        with self._lock:
            if self.stopped.is_set():
                raise CallFailed("connection", "given up", is_retried=False)
            self._watches.add(watch)
        timer = threading.Timer(timeout, watch.expire)  # a socket's own timeout restarts with every byte
        timer.daemon = True
        timer.start()
        try:
            status, headers, content = self._exchange(watch, method, path, body, timeout)
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            is_late = watch.has_expired or isinstance(error, TimeoutError)
            raise CallFailed("timeout" if is_late else _kind_of(error), self.hidden(repr(error)[:300])) from error
        finally:
            timer.cancel()
            with self._lock:
                self._watches.discard(watch)
        if watch.has_expired:
            raise CallFailed("timeout", f"no whole answer within {timeout} s")
        if status != 200 and status not in _NOT_OF_REQUEST and is_too_long(content):
            raise CallFailed(CONTEXT, self.hidden(content[:300].decode("utf8", "replace")), is_retried=False)
        if status != 200:
            is_retried = status in _RETRIED_STATUSES or status >= 500
            detail = self.hidden(content[:300].decode("utf8", "replace"))
            wait = retry_after(headers)
            if status == 429:
                wait = wait or rate_limit_wait(headers)
                is_retried = NO_CREDIT not in detail
                self._hold(wait)
            raise CallFailed(f"http_{status}", detail, is_retried, wait)
        return content

    def _hold(self, seconds: float) -> None:
        """Let no request begin for so long, because the rate limit is common to all of them."""
        with self._lock:
            self._opens = max(self._opens, time.monotonic() + seconds)

    @property
    def held(self) -> float:
        """Seconds until the rate limit that the server reported lets requests begin again."""
        return max(0.0, self._opens - time.monotonic())

    def abort(self) -> None:
        """Close every connection, so that waiting threads continue at once, and refuse new ones.

        Clear ``stopped`` to start again.
        """
        self.stopped.set()
        self.cut()

    def cut(self) -> None:
        """Close every connection, so that waiting threads continue at once; new ones may be opened."""
        with self._lock:
            for watch in self._watches:
                watch.cut()

    def hidden(self, text: str) -> str:
        """Return a text without the key, in case a server echoed it."""
        return text.replace(self._key, "[key]") if len(self._key) >= _SHORTEST_SECRET else text

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        where = self.address
        if self._context is None:
            return http.client.HTTPConnection(where.host, where.port, timeout=min(timeout, _CONNECT_SECONDS))
        return http.client.HTTPSConnection(
            where.host, where.port, timeout=min(timeout, _CONNECT_SECONDS), context=self._context
        )

    def _exchange(
        self, watch: _Watch, method: str, path: str, body: bytes | None, timeout: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection = self._connection(timeout)
        try:
            connection.connect()
            watch.socket = connection.sock  # the connection drops it as soon as the answer starts
            watch.socket.settimeout(timeout)
            if watch.is_cut:  # aborted before there was a connection
                raise ConnectionAbortedError("cut before it was open")
            connection.request(method, path, body, headers)
            with connection.getresponse() as response:
                content = response.read(LARGEST_ANSWER + 1)
                if response.length:  # read(amount) does not report a truncated answer
                    raise http.client.IncompleteRead(content, response.length)
                return response.status, response.headers, content
        finally:
            connection.close()


def _kind_of(error: Exception) -> str:
    is_cut = isinstance(error, (OSError, UnicodeError, http.client.IncompleteRead))
    return "connection" if is_cut else "malformed"


def retry_after(headers: Mapping[str, str] | Message) -> float:
    """Return the seconds that a server asks to wait; 0 if it does not ask.

    A date is compared with the server's own clock if the answer has a ``Date`` header.

    >>> retry_after({"Retry-After": "2.5"}), retry_after({"Retry-After": "soon"}), retry_after({})
    (2.5, 0.0, 0.0)
    >>> retry_after({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"})
    30.0
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(_NUMBER, value):
        return float(value)
    try:
        now = parsedate_to_datetime(headers["Date"]) if "Date" in headers else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def rate_limit_wait(headers: Mapping[str, str] | Message) -> float:
    """Return the seconds until a rate limit resets, from OpenAI's headers; 0 without any.

    Only limits of which nothing remains count, where the server says what remains.

    >>> limits = {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}
    >>> rate_limit_wait(limits), rate_limit_wait({**limits, "x-ratelimit-remaining-tokens": "9"})
    (360.0, 1.0)
    >>> rate_limit_wait({"x-ratelimit-reset-tokens": "120ms"}), rate_limit_wait({"x-ratelimit-reset-tokens": "soon"})
    (0.12, 0.0)
    """
    waits = [0.0]
    for kind in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{kind}", "0").strip() in ("0", "-1"):
            waits.append(_seconds_of(headers.get(f"x-ratelimit-reset-{kind}", "").strip()))
    return max(waits)


def _seconds_of(duration: str) -> float:
    """Return the seconds of a duration such as ``6m0s``, ``120ms`` or ``2.5``; 0 for any other text."""
    if re.fullmatch(_NUMBER, duration):
        return float(duration)
    if not re.fullmatch(rf"(?:{_NUMBER}(?:ms|[dhms]))+", duration):
        return 0.0
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(rf"({_NUMBER})(ms|[dhms])", duration))


def is_too_long(content: bytes) -> bool:
    """Return whether a server's error says that a request exceeds the model's context, for common servers.

    >>> is_too_long(b"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens")
    True
    >>> is_too_long(b"Rate limit reached: tokens per min")
    False
    """
    return _TOO_LONG.search(content[:4000].decode("utf8", "replace")) is not None
