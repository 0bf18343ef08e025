"""Access control of turngym's HTTP servers: holders of the token, or programs on this machine, and no web pages."""

from __future__ import annotations

import hmac
from typing import NamedTuple
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Denial(NamedTuple):
    """Why a request is refused.

    Args:
        status: Status of HTTP.
        detail: The reason, in words.
    """

    status: int
    detail: str


def denial(token: str, host: str, origin: str = "", authorization: str = "") -> Denial | None:
    """Return why a request is refused; None if it is answered.

    A web page that is open in a browser on this machine can send requests to the loopback, under its own name for this
    address too. So requests of other origins are refused, and without a token all that name another host.

    Args:
        token: Token of clients; empty for none.
        host: The header ``Host``.
        origin: The header ``Origin``, empty if there is none.
        authorization: The header ``Authorization``.

    >>> denial("", "127.0.0.1:8000"), denial("", "example.org").status, denial("", "localhost", "http://evil.org").status
    (None, 403, 403)
    >>> denial("secret", "example.org").status, denial("secret", "example.org", "", "Bearer secret")
    (401, None)
    """
    if origin and _place(origin) != host:
        return Denial(403, "requests of web pages of another origin are not answered")
    if token:
        kind, _, given = authorization.partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf8", "replace"), token.encode())
        if kind.lower() != "bearer" or not same:
            return Denial(401, "send the header Authorization: Bearer TOKEN, with the token of the server")
    elif hostname(host) not in LOOPBACK:
        return Denial(403, f"without a token only the loopback is served, not {host[:100]!r}")
    return None


def hostname(host: str) -> str:
    """Return the name in a Host header.

    >>> hostname("[::1]:8000"), hostname("localhost")
    ('::1', 'localhost')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
