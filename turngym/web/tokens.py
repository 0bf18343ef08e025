"""Tokens of servers that may not be open to every program on this machine, kept in files of the user's own."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from turngym.errors import ConfigError
from turngym.storage.files import cache_folder

_MOST_BYTES = 256


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
        found = _read(path)
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


def _read(path: Path) -> str:
    """Return the token in a file; empty if there is none that only this user can read and write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            return ""
        text = file.read(_MOST_BYTES).decode("ascii", "replace").strip()
    return text if len(text) >= 32 and text.isprintable() else ""
