"""Arguments that a format writes as bare text, read with the types that the tool declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.agents.gateway.conversations.call_formats.base import loaded

_PYTHON = {"True": True, "False": False, "None": None}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_ANY = frozenset({*_KINDS, "string"})


def typed(text: str, schema: Any) -> Any:
    """Return an argument as the type that its schema declares.

    A declared string stays the text that it is. A text that fits no declared type stays text too, so that the tool
    refuses it. Without a declaration JSON is data, and everything else is text.

    >>> typed("12345", {"type": "string"}), typed("12345", {"type": "integer"}), typed("12345", {})
    ('12345', 12345, 12345)
    >>> typed("True", {"type": "boolean"}), typed("yes", {"type": "boolean"}), typed("1e5", {"type": "integer"})
    (True, 'yes', '1e5')
    """
    kinds = _kinds(schema)
    is_declared = kinds != _ANY
    word = text.strip()
    value = _PYTHON[word] if is_declared and word in _PYTHON else loaded(word)
    if isinstance(value, str) or (value is None and word not in ("null", "None")):
        return text
    if not is_declared:
        return text if value is None and word != "null" else value
    return value if any(_is_a(value, kind) for kind in kinds - {"string"}) else text


def _kinds(schema: Any, depth: int = 0) -> frozenset[str]:
    """Return the types that a schema allows; all of them where it declares none."""
    if not isinstance(schema, Mapping) or depth > 8:
        return _ANY
    ways = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(ways, list) and ways:
        return frozenset().union(*(_kinds(way, depth + 1) for way in ways))
    declared = schema.get("type")
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list) and declared:
        kinds = {str(kind).lower() for kind in declared}
    elif isinstance(values := schema.get("enum"), list) and values:
        kinds = {kind for value in values for kind in _ANY if _is_a(value, kind)}
    else:
        return _ANY
    if schema.get("nullable") is True:
        kinds.add("null")
    return frozenset(kinds)


def _is_a(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS.get(kind, ()))
