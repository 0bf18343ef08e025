"""Names and splits of task instances, from their canonical text."""

from __future__ import annotations

import hashlib
import json

from turngym.types import SPLITS, JSONValue, Split

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def instance_hash(instance: str) -> str:
    """Return the name of a task instance: a hash of its canonical text.

    >>> instance_hash("a room") == instance_hash("a room") != instance_hash("another room")
    True
    """
    return hashlib.sha256(instance.encode("utf8", "surrogatepass")).hexdigest()[:16]


def split_of(instance: str) -> Split:
    """Return the split that an instance belongs to: 80 % train, 10 % dev, 10 % test, by hash.

    >>> {split_of(str(i)) for i in range(100)} == {"train", "dev", "test"}
    True
    """
    bucket = (
        int.from_bytes(hashlib.sha256(instance.encode("utf8", "surrogatepass")).digest()[:8], "big") % 10
    )  # the number of instance_hash()
    return "train" if bucket < 8 else SPLITS[bucket - 7]


def canonical_text(value: JSONValue) -> str:
    """Return the canonical text of a JSON value.

    >>> canonical_text({"secret": 7, "low": 0})
    '{"low": 0, "secret": 7}'
    """
    return _CANONICAL.encode(value)
