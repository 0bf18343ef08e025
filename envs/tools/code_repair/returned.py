"""Results of a program, as text from the sandbox: read within bounds, compared, shown.

The text is untrusted. The values that it describes are not built: no set or dictionary, whose elements could be chosen
to collide, and no number with more digits than Python itself reads. So the cost is about that of sorting it.
"""

from __future__ import annotations

import json
from typing import Any

from turngym.envs.tools.code_repair.values import decode, encode, same

LONGEST = 10_000
"""Characters of an encoded value."""
_MOST_DIGITS = 4300
_DEEPEST = 100
_ATOMS = ("complex", "float", "bytes")


def read(text: str) -> Any:
    """Return an encoded value as ``encode`` made it (see :mod:`turngym.envs.tools.code_repair.values`).

    >>> read('{"tuple": [1, {"set": [2]}]}')
    {'tuple': [1, {'set': [2]}]}

    Raises:
        ValueError: It is not an encoded value, or larger than one may be.
    """
    if len(text) > LONGEST:
        raise ValueError("too long")
    try:
        value = json.loads(text, object_pairs_hook=_node, parse_int=_whole)
        _require_encoded(value, 0)
    except (RecursionError, TypeError) as error:
        raise ValueError("no encoded value") from error
    return value


def _node(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) != 1:
        raise ValueError("no encoded value")
    return dict(pairs)


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("too many digits")
    return int(digits)


def _require_encoded(value: Any, depth: int) -> None:
    """Raise ValueError unless every part has a form that ``encode`` gives to plain values."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if isinstance(value, list):
        for each in value:
            _require_encoded(each, depth + 1)
    elif isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind in _ATOMS:
            decode(value)
        elif kind in ("tuple", "set", "dict") and isinstance(content, list):
            if kind == "dict" and not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
                raise ValueError("no encoded value")
            _require_encoded(content, depth)
        else:
            raise ValueError(f"no encoded value: {kind}")


def matches(value: Any, expected: Any) -> bool:
    """Return whether an encoded value equals an expected one; numbers with a point may differ by rounding.

    >>> matches(read('[0.3, {"tuple": [1]}]'), [0.1 + 0.2, (1,)]), matches([1], (1,))
    (True, False)
    """
    if isinstance(expected, list):
        return isinstance(value, list) and _all_match(value, expected)
    if isinstance(expected, tuple):
        content = _content(value, "tuple")
        return content is not None and _all_match(content, expected)
    if isinstance(expected, set | frozenset):
        content = _content(value, "set")
        return content is not None and sorted(map(_name, content)) == sorted(map(_name, map(encode, expected)))
    if isinstance(expected, dict):
        content = _content(value, "dict")
        return content is not None and _entries_match(content, expected)
    if isinstance(value, list) or (isinstance(value, dict) and not any(kind in value for kind in _ATOMS)):
        return False
    return same(decode(value), expected)


def _content(value: Any, kind: str) -> list[Any] | None:
    return value[kind] if isinstance(value, dict) and kind in value else None


def _all_match(values: list[Any], expected: list[Any] | tuple[Any, ...]) -> bool:
    return len(values) == len(expected) and all(map(matches, values, expected))


def _entries_match(entries: list[list[Any]], expected: dict[Any, Any]) -> bool:
    found = sorted(((_name(key), value) for key, value in entries), key=lambda entry: entry[0])
    wanted = sorted(((_name(encode(key)), value) for key, value in expected.items()), key=lambda entry: entry[0])
    if [name for name, _ in found] != [name for name, _ in wanted]:
        return False
    return all(matches(value, other) for (_, value), (_, other) in zip(found, wanted, strict=True))


def _name(value: Any) -> str:
    """Return a text that encoded values have in common which are equal as elements of a set.

    >>> _name(1) == _name(1.0) == _name(True) != _name("1")
    True
    """
    if isinstance(value, list):
        return f"[{','.join(map(_name, value))}]"
    if not isinstance(value, dict):
        return _name_of_atom(value)
    ((kind, content),) = value.items()
    if kind in _ATOMS:
        return _name_of_atom(decode(value))
    names = [_name(each) for each in content]
    return f"{kind}({','.join(names if kind == 'tuple' else sorted(names))})"


def _name_of_atom(value: Any) -> str:
    if isinstance(value, complex) and value.imag == 0:
        value = value.real
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(int(value) if isinstance(value, bool) else value)


def shown(value: Any) -> str:
    """Return an encoded value as Python writes it; elements of sets are in order.

    >>> shown({"dict": [[1, {"tuple": [2]}], ["a", {"set": [10, 9]}]]})
    "{1: (2,), 'a': {9, 10}}"
    """
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    ((kind, content),) = value.items()
    if kind in _ATOMS:
        return repr(decode(value))
    if kind == "dict":
        return f"{{{', '.join(f'{shown(key)}: {shown(each)}' for key, each in content)}}}"
    if kind == "tuple":
        return f"({', '.join(map(shown, content))}{',' if len(content) == 1 else ''})"
    are_whole = all(isinstance(each, int) for each in content)
    parts = [shown(each) for each in (sorted(content) if are_whole else content)]
    return f"{{{', '.join(parts)}}}" if parts else "set()"
