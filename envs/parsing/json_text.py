"""JSON in model output: the first object in an arbitrary text."""

from __future__ import annotations

import json
from typing import Any

MOST_TRIES = 256
"""Maximum number of starting braces to try; otherwise a text of nested braces would take seconds."""
MOST_READINGS = 8
"""Limit on repeated reading, where every start fails only much later in the text."""
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
