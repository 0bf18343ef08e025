"""JSON in what a model wrote: the first object in a text that may hold anything."""

from __future__ import annotations

import json
from typing import Any

MOST_TRIES = 256
"""Beginnings that are tried: a text of nothing but nested beginnings would take seconds otherwise."""
MOST_READINGS = 8
"""How often a text may be read in all, where every beginning is broken only far behind it."""
_DECODER = json.JSONDecoder()


def first_object(text: str, tries: int = MOST_TRIES) -> dict[str, Any] | None:
    """Return the first JSON object in a text, None if there is none at its first braces.

    Args:
        text: Any text.
        tries: Braces at which one is looked for.

    >>> first_object('I think {so}: {"tool": "search"}, {"tool": "answer"}')
    {'tool': 'search'}
    >>> first_object('{"a":' * 200_000) is None
    True
    """
    start, left = text.find("{"), MOST_READINGS * len(text)
    for _ in range(tries):
        if start < 0 or left < 0:
            return None
        try:
            found, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            left -= getattr(error, "pos", len(text)) - start
            start = text.find("{", start + 1)
            continue
        return found if isinstance(found, dict) else None
    return None
