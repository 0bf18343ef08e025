"""Access control of turngym's HTTP servers: holders of the token, or programs on this machine, and no web pages."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from turngym.errors import ConfigError
from turngym.storage.files import cache_folder

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LONGEST_TOKEN = 256


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


def own_token(name: str) -> tuple[str, Path]:
    """Return the token of a server and the file that holds it, which is written unless it exists.

    A server that is restarted has the same token. Only this user can read the file.

    Args:
        name: Name of the server.

    Raises:
        ConfigError: The file cannot be written.
    """
    path = cache_folder("tokens") / name
    try:
        found = _read_token(path)
        if found:
            return found, path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{name}.{secrets.token_hex(8)}")
        token = secrets.token_urlsafe(32)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(token)
        temporary.replace(path)
    except OSError as error:
        raise ConfigError(f"the token of the server cannot be kept in {path} ({error}): pass --token.") from error
    return token, path


def _read_token(path: Path) -> str:
    """Return the token in a file; empty if there is none that only this user can read and write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            return ""
        text = file.read(_LONGEST_TOKEN).decode("ascii", "replace").strip()
    return text if len(text) >= 32 and text.isprintable() else ""
