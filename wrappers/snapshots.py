"""Snapshot format of a wrapped environment: nested JSON objects, one per wrapper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from turngym.errors import ConfigError
from turngym.types import JSONValue

FORMAT = "wrapped 1"


def parsed(snapshot: bytes) -> dict[str, Any]:
    """Return the content of a snapshot.

    Raises:
        ConfigError: The bytes are not a JSON object.
    """
    try:
        content = json.loads(snapshot)
    except Exception as error:  # untrusted bytes: anything may be raised
        raise ConfigError("restore() got bytes that are not a snapshot of turngym.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"restore() got no snapshot of turngym, but {str(content)[:40]!r}.")
    return content


def written(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a snapshot's content."""
    return json.dumps(content, sort_keys=True).encode()


def wrappers_in(content: Any) -> list[JSONValue]:
    """Return the wrappers of a snapshot, the innermost first.

    >>> wrappers_in({"format": FORMAT, "settings": {"wrapper": "history"}, "inner": {"format": 1, "settings": {}}})
    ['history']
    """
    found = []
    while isinstance(content, Mapping) and content.get("format") == FORMAT:
        settings = content.get("settings")
        found.append(settings.get("wrapper") if isinstance(settings, Mapping) else None)
        content = content.get("inner")
    return found[::-1]


def told(wrappers: list[JSONValue]) -> str:
    """Return wrappers on one line, for a message.

    >>> told([{"name": "history", "options": {"k": 2}}, {"name": "record", "options": {}}])
    "[history{'k': 2}, record]"
    """
    return "[" + ", ".join(f"{each['name']}{each['options'] or ''}" if each else "?" for each in wrappers) + "]"


def has_shape(content: Mapping[str, Any], like: Mapping[str, Any]) -> bool:
    """Return True if all content of ``like`` is present with the same types.

    Parts of ``like`` that are None match anything.

    >>> has_shape({"turns": 3, "pairs": []}, {"turns": 0}), has_shape({"turns": "3"}, {"turns": 0})
    (True, False)
    """
    return all(key in content and (value is None or type(content[key]) is type(value)) for key, value in like.items())


def plain(options: Mapping[str, Any]) -> dict[str, JSONValue]:
    """Return options as JSON values; functions become their name, other callables their class.

    >>> plain({"count": len, "levels": (1, 2)})
    {'count': 'builtins:len', 'levels': [1, 2]}
    """
    return cast("dict[str, JSONValue]", json.loads(json.dumps(dict(options), default=_named)))


def _named(value: Any) -> str:
    if not callable(value):
        return str(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"
