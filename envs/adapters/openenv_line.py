"""Connections to OpenEnv servers: one event loop per process, usable from any thread or loop."""

from __future__ import annotations

import asyncio
import http.client
import importlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlsplit

from turngym.errors import ConfigError, TurngymError, missing_extra

Body = dict[str, Any]
_LARGEST_MESSAGE = 1 << 24
_PIECE = 1 << 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WAITS = (0.05, 2.0)
_CLOSING_SECONDS = 2.0


class ServerFault(TurngymError):
    """A server that cannot be reached, or gives an invalid answer: in a vector the fault of one slot."""


class Refused(ServerFault):
    """An error message from a server.

    Args:
        code: Error code, such as ``"VALIDATION_ERROR"``.
        message: Error text.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the server refused: {message} ({code})")
        self.code, self.words = code, message


class _Home:
    """The event loop that all connections of this process share; it runs as long as there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = self._process = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def enter(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, and keep it running until :meth:`leave`."""
        with self._lock:
            if self._process != os.getpid():  # threads do not survive a fork
                self._loop, self._users, self._process = None, 0, os.getpid()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="turngym-openenv", daemon=True).start()
            self._users += 1
            return self._loop

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop the loop when its last user has left."""
        with self._lock:
            if loop is not self._loop or self._process != os.getpid():
                return
            self._users -= 1
            if not self._users:
                self._loop = None
                loop.call_soon_threadsafe(loop.stop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
    loop.close()


_HOME = _Home()


class Line:
    """One session on a server. It connects when an episode starts, and again if the connection was lost since the last.

    Args:
        url: The server, such as ``http://127.0.0.1:8000``.
        token: Sent as ``Authorization: Bearer TOKEN`` unless empty.
        connect_seconds: Seconds to retry opening a session on a server that is full or starting.
        answer_seconds: Timeout of an answer.

    Raises:
        MissingExtra: websockets is not installed.
    """

    def __init__(self, url: str, token: str, connect_seconds: float, answer_seconds: float) -> None:
        try:
            self._client: Any = importlib.import_module("websockets.asyncio.client")
            self._connecting: Any = type("Connecting", (self._client.connect,), {"process_redirect": _refuse_redirect})
            self._errors: Any = importlib.import_module("websockets.exceptions")
        except ModuleNotFoundError as error:
            raise missing_extra("a client of OpenEnv", "websockets", "serve") from error
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connect_seconds, self._answer_seconds = connect_seconds, answer_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: Any = None

    def begin(self, data: Body) -> Future[Body]:
        """Start an episode; the result is the data of the first observation, or a :class:`ServerFault`."""
        return self._run(self._begin(data))

    def act(self, data: Body) -> Future[Body]:
        """Take a turn; the result is the data of the observation, or a :class:`ServerFault`."""
        return self._run(self._ask({"type": "step", "data": data}))

    def close(self) -> None:
        """Close the connection."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._hang_up(), loop).result(2 * _CLOSING_SECONDS)
        except (TimeoutError, RuntimeError):  # the loop is gone, or busy: the server notices by itself
            pass
        finally:
            _HOME.leave(loop)

    def _run(self, coroutine: Coroutine[Any, Any, Body]) -> Future[Body]:
        if self._loop is None:
            self._loop = _HOME.enter()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    async def _begin(self, data: Body) -> Body:
        message = {"type": "reset", "data": data}
        if self._socket is not None:
            try:
                return await self._ask(message)
            except Refused as refused:
                if refused.code != "SESSION_ERROR":  # such as one that was idle for too long
                    raise
            except ServerFault:
                await self._hang_up()
        end, wait = asyncio.get_running_loop().time() + self._connect_seconds, _WAITS[0]
        while True:
            try:
                await self._connect(end)
                return await self._ask(message)
            except Refused as refused:
                await self._hang_up()
                if refused.code != "CAPACITY_REACHED" or asyncio.get_running_loop().time() + wait > end:
                    raise
            except OSError as error:
                if asyncio.get_running_loop().time() + wait > end:
                    raise ServerFault(f"{self.url} cannot be reached: {error}") from error
            await asyncio.sleep(wait)
            wait = min(2 * wait, _WAITS[1])

    async def _connect(self, end: float) -> None:
        await self._hang_up()
        seconds = max(0.1, end - asyncio.get_running_loop().time())
        more: Body = {"proxy": None} if is_local(self.url) else {}
        try:
            self._socket = await self._connecting(
                f"ws{self.url.removeprefix('http')}/ws",
                additional_headers=self._headers,
                open_timeout=seconds,
                close_timeout=_CLOSING_SECONDS,
                max_size=_LARGEST_MESSAGE,
                max_queue=1,  # limits what a server can send unasked
                compression=None,
                ping_interval=None,  # a step has its own limit
                **more,
            )
        except self._errors.InvalidStatus as error:
            status = error.response.status_code
            if status in (401, 403):
                raise ConfigError(denied(self.url, status)) from error
            raise OSError(f"status {status}") from error
        except (self._errors.InvalidHandshake, self._errors.InvalidURI) as error:
            raise ServerFault(f"{self.url} is not a server of OpenEnv's protocol: {error}") from error

    async def _ask(self, message: Body) -> Body:
        if self._socket is None:
            raise ServerFault(f"there is no session with {self.url}: its connection was lost. Call reset().")
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._socket.send(json.dumps(message))
                answer = json.loads(await self._socket.recv())
        except self._errors.ConnectionClosed as error:
            answer = await self._last_words(error)
        except TimeoutError as error:
            self._drop()
            raise ServerFault(f"{self.url} did not answer within {self._answer_seconds:g} seconds") from error
        except asyncio.CancelledError:
            self._drop()
            raise
        except (ValueError, RecursionError) as error:
            raise ServerFault(f"{self.url} answered with what is not JSON") from error
        return self._read(answer)

    async def _last_words(self, error: Exception) -> Any:
        """Return the message that a server sent before it closed, if there is one."""
        socket, self._socket = self._socket, None
        try:
            return json.loads(await socket.recv())
        except (self._errors.ConnectionClosed, ValueError, RecursionError):
            raise ServerFault(f"the connection to {self.url} was lost: {error}") from error

    def _read(self, answer: Any) -> Body:
        data = answer.get("data") if isinstance(answer, dict) else None
        if isinstance(data, dict) and answer.get("type") == "error":
            raise Refused(str(data.get("code", ""))[:100], str(data.get("message", ""))[:500])
        if not isinstance(data, dict) or not isinstance(data.get("observation"), dict):
            raise ServerFault(f"{self.url} answered with what is not an observation: {str(answer)[:200]}")
        return data

    def _drop(self) -> None:
        """Drop the connection at once, so that a late answer is not taken for the answer to another question."""
        socket, self._socket = self._socket, None
        if socket is not None:
            self._goodbye = asyncio.ensure_future(socket.close())

    async def _hang_up(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()


def is_local(url: str) -> bool:
    """Return whether a URL names this machine, which must not be reached through a proxy.

    >>> is_local("http://127.0.0.1:8000"), is_local("https://example.org")
    (True, False)
    """
    return urlsplit(url).hostname in _LOOPBACK


def denied(url: str, status: int) -> str:
    """Return the error text for a server that rejects the token."""
    return f"{url} refuses this client (status {status}): pass the token that its owner gave you as token=..."


def fetch(url: str, path: str, token: str, seconds: float) -> Body:
    """Return the JSON object that a server answers to a GET request.

    Raises:
        ConfigError: It wants another token.
        ServerFault: It cannot be reached, or answers with something else.
    """
    answer: Future[Body] = Future()

    def ask() -> None:
        try:
            answer.set_result(_fetched(url, path, token, seconds))
        except BaseException as error:  # raised again where the caller waits
            answer.set_exception(error)

    threading.Thread(target=ask, name="turngym-openenv-fetch", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:  # its headers arrive byte by byte: abandon the thread
        raise ServerFault(f"{url}{path} did not answer within {seconds:g} seconds") from error


def _fetched(url: str, path: str, token: str, seconds: float) -> Body:
    request = urllib.request.Request(url.rstrip("/") + path)
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    handlers = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if is_local(url) else [])]
    end = time.monotonic() + seconds
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=seconds) as response:
            found = json.loads(_read_until(response, end))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise ConfigError(denied(url, error.code)) from error
        raise ServerFault(f"{url}{path} answered with status {error.code}") from error
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise ServerFault(f"{url}{path} cannot be read: {type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise ServerFault(f"{url}{path} answered with what is not an object")
    return found


def _refuse_redirect(_: Any, error: Exception) -> Exception:
    """Replace a method of websockets that would follow redirects."""
    return error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects: a server may not send clients elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _read_until(response: Any, end: float) -> bytes:
    """Return the body of an answer, or raise if it is not complete in time."""
    parts, size = [], 0
    while part := response.read1(_PIECE):
        parts.append(part)
        size += len(part)
        if size > _LARGEST_MESSAGE:
            raise ValueError(f"it has more than {_LARGEST_MESSAGE} bytes")
        if time.monotonic() > end:
            raise TimeoutError("it did not arrive in time")
    return b"".join(parts)
