"""Server health checks, before anything is played and again when a turn is lost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

from turngym.agents.chat_client.client import CallFailed, ChatServer
from turngym.agents.chat_client.exchange import EMPTY, NO_CREDIT, RATE_LIMIT, UNFINISHED
from turngym.errors import ServerDown

_LIST_SECONDS = 20.0
_CHECK_SECONDS = 60.0
_SHOWN = 8
_MOST_ATTEMPTS = 3  # a server that fails with an internal error may be starting, so wait longer
_UNREACHABLE = frozenset({"connection", "timeout"})
_OF_SERVER = _UNREACHABLE | {"http_401", "http_403", "http_404", "http_429"}
_ALIVE = frozenset({EMPTY, UNFINISHED, RATE_LIMIT})
"""Failures of a short request from a working server: an empty answer, or a rate limit."""


def check_server(server: ChatServer, model: str, body: Mapping[str, Any], wait: Callable[[int], float]) -> None:
    """Ask a server for its models, and for a few tokens if the model is not listed.

    Args:
        server: The server.
        model: Name of the model.
        body: Fields of a request except its messages.
        wait: Seconds to wait after a failed attempt.

    Raises:
        ServerDown: It cannot be reached, refuses the key, or has no such model; the message says which.
    """
    try:
        known = server.models(_LIST_SECONDS)
    except CallFailed as failure:
        if failure.kind in _UNREACHABLE or failure.kind in ("http_401", "http_403"):
            raise ServerDown(explained(server, model, failure, [])) from failure
        known = []
    if model in known:
        return
    ends = time.monotonic() + _CHECK_SECONDS
    messages = [{"role": "user", "content": "Say OK."}]
    for attempt in itertools.count():
        left = ends - time.monotonic()
        try:
            server.ask({**body, "messages": messages}, max(left, 1.0))
            return
        except CallFailed as failure:
            if failure.kind in _ALIVE and NO_CREDIT not in failure.detail:
                return
            pause = max(wait(attempt), failure.retry_after)
            is_last = attempt + 1 >= _MOST_ATTEMPTS and not failure.kind.startswith("http_5")
            if is_last or not failure.is_retried or failure.kind in _UNREACHABLE or pause > left:
                raise ServerDown(explained(server, model, failure, known)) from failure
            time.sleep(pause)


def is_unreachable(server: ChatServer) -> CallFailed | None:
    """Return why a server cannot be connected to; None if it responds at all."""
    try:
        server.models(_LIST_SECONDS)
    except CallFailed as failure:
        return failure if failure.kind in _UNREACHABLE and not server.stopped.is_set() else None
    return None


def is_of_server(failure: CallFailed) -> bool:
    """Return whether a failure is the server's rather than the request's, which may be too long for the model.

    >>> is_of_server(CallFailed("http_503", "")), is_of_server(CallFailed("http_400", "too many tokens"))
    (True, False)
    """
    return failure.kind in _OF_SERVER or failure.kind.startswith("http_5")


def explained(server: ChatServer, model: str, failure: CallFailed, known: list[str]) -> str:
    """Explain in a sentence or two why a server cannot be used, and how to fix it."""
    url, detail = server.address.url, " ".join(failure.detail.split())[:160]
    if failure.kind == "connection":
        return f"nothing can be reached at {url} ({detail}): start the server, or correct the URL after the @."
    if failure.kind == "timeout":
        return f"the server at {url} does not answer in time ({detail}): look whether it is still loading or too busy."
    if failure.kind in ("http_401", "http_403"):
        return f"the server at {url} refuses the key ({failure.kind}: {detail}): put it into TURNGYM_API_KEY."
    if NO_CREDIT in failure.detail:
        return f"the account at {url} has no credit left ({detail}): add some, or use another key."
    if failure.kind == RATE_LIMIT and failure.retry_after:
        return (
            f"the rate limit at {url} is reached, with {failure.retry_after:,.0f} s to wait ({detail}): continue later."
        )
    if known:
        names = ", ".join(sorted(known)[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        return f"the server at {url} answers {failure.kind} for the model {model!r} ({detail}). Its models: {names}."
    if failure.kind == "http_404":
        return f"there is no model {model!r} or no chat at {url} (http_404: {detail}): correct the model or the URL."
    return f"the server at {url} gives no usable answer ({failure.kind}: {detail}): look into its log, or the URL."
