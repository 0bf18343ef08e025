"""Values of Python as JSON, with what JSON does not know: tuples, sets, keys that are not texts, odd numbers.

The sandbox is sent this file as text, so it imports nothing but the standard library.
"""

from __future__ import annotations

import json
import math
from typing import Any

_DEEPEST = 40


def encode(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it.

    >>> encode((1, {2}))
    {'tuple': [1, {'set': [2]}]}
    """
    if depth > _DEEPEST:
        return {"other": "too deep"}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, complex):
        return {"complex": [encode(value.real), encode(value.imag)]}
    if isinstance(value, list):
        return [encode(each, depth + 1) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(each, depth + 1) for each in value]}
    if isinstance(value, set | frozenset):
        return {"set": sorted((encode(each, depth + 1) for each in value), key=json.dumps)}
    if isinstance(value, dict):
        return {"dict": [[encode(key, depth + 1), encode(each, depth + 1)] for key, each in value.items()]}
    if isinstance(value, bytes | bytearray):
        return {"bytes": value.hex()}
    return {"other": repr(value)[:200]}


def decode(value: Any) -> Any:
    """Return what ``encode`` was given.

    >>> decode({"tuple": [1, {"set": [2]}]})
    (1, {2})

    Raises:
        ValueError: It is not from there, or had no such form.
    """
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {decode(key): decode(each) for key, each in content}
    if kind in ("tuple", "set"):
        parts = [decode(each) for each in content]
        return tuple(parts) if kind == "tuple" else set(parts)
    if kind == "complex":
        return complex(*map(decode, content))
    if kind == "float":
        return float(content)
    if kind == "bytes":
        return bytes.fromhex(content)
    raise ValueError(f"no value: {kind}")


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal; numbers with a point may differ by rounding.

    >>> same([0.1 + 0.2, (1,)], [0.3, (1,)]), same((1,), [1])
    (True, False)
    """
    if isinstance(first, float) or isinstance(second, float):
        if not isinstance(first, int | float) or not isinstance(second, int | float):
            return False
        return (first != first and second != second) or math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(first, list | tuple):
        parts = zip(first, second) if type(first) is type(second) and len(first) == len(second) else None  # noqa: B905
        return parts is not None and all(same(a, b) for a, b in parts)
    if isinstance(first, dict):
        if not isinstance(second, dict) or first.keys() != second.keys():
            return False
        return all(same(each, second[key]) for key, each in first.items())
    return bool(first == second)
