"""Whether what was restored from a snapshot is what the snapshot holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def require_same_content(restored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise unless a state that was restored would be saved as it was given.

    A damaged value is often taken up silently: one that is cut off, rounded, or of another type. Then it comes out
    differently again.

    Args:
        restored: What a snapshot holds that was taken right after the restoring.
        given: What the snapshot holds that was restored.

    Raises:
        ValueError: They differ; the message names the parts.

    >>> require_same_content({"turn": 1, "a": float("nan")}, {"turn": 1, "a": float("nan")})
    >>> require_same_content({"turn": 1}, {"turn": True, "more": 0})
    Traceback (most recent call last):
        ...
    ValueError: the restored state differs in more, turn
    """
    absent = object()
    differing = [
        key
        for key in sorted(restored.keys() | given.keys())
        if _text(restored.get(key, absent)) != _text(given.get(key, absent))
    ]
    if differing:
        raise ValueError(f"the restored state differs in {', '.join(differing)[:200]}")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=lambda _: "absent")
