"""The text of an observation, with or without an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_of(observation: Any) -> str:
    """Return the text of an observation.

    >>> text_of({"text": "a box", "image": None}), text_of("a box")
    ('a box', 'a box')
    """
    return str(observation["text"] if isinstance(observation, Mapping) else observation)


def with_text(observation: Any, text: str) -> Any:
    """Return the observation with another text.

    >>> with_text({"text": "a box", "image": None}, "no box")
    {'text': 'no box', 'image': None}
    """
    return {**observation, "text": text} if isinstance(observation, Mapping) else text
