"""JSON in model output: the first object in an arbitrary text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST_TRIES = 256
"""Maximum number of starting braces to try; otherwise a text of nested braces would take seconds."""
MOST_READINGS = 8
"""Limit on repeated reading, where every start fails only much later in the text."""
_DECODER = json.JSONDecoder()


def objects(text: str, tries: int = MOST_TRIES) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the JSON objects in a text with where they start and end, as far as its first braces show some.

    >>> [(start, end) for start, end, _ in objects('{so}: {"a": {}} {"b": 1}')]
    [(6, 15), (16, 24)]
    """
    start, left = text.find("{"), MOST_READINGS * len(text)
    for _ in range(tries):
        if start < 0 or left < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            left -= getattr(error, "pos", len(text)) - start
            start = text.find("{", start + 1)
            continue
        yield start, end, found
        start = text.find("{", end)


def object_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the JSON objects in a text start and end."""
    return ((start, end) for start, end, _ in objects(text))


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
    return next((found for _, _, found in objects(text, tries)), None)
