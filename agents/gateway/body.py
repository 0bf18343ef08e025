"""Reading the body of a request: strict JSON of bounded size and depth, and text that UTF-8 can hold."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from turngym.agents.gateway.conversations.messages import is_deeper
from turngym.agents.gateway.refusal import Body, Refusal, wrong
from turngym.text import valid_text

_LARGEST_INTEGER = 2**63
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_object(raw: bytes, max_depth: int) -> Body:
    r"""Return the JSON object of a body; lone surrogates in its texts become U+FFFD.

    Args:
        raw: The body.
        max_depth: Nested objects and lists that are allowed.

    Raises:
        Refusal: It is not a JSON object, not UTF-8, nested too deep, or has a number that 64 bits do not hold.

    >>> read_object(b'{"text": "a\\ud800"}', 8)
    {'text': 'a\ufffd'}
    """
    try:
        found = json.loads(raw.decode("utf8"), parse_constant=_no_number, parse_float=_float, parse_int=_integer)
    except RecursionError as error:
        raise wrong(f"the body is nested deeper than {max_depth} levels.") from error
    except UnicodeDecodeError as error:
        raise wrong("the body is not UTF-8.") from error
    except ValueError as error:
        raise wrong(f"the body is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise wrong("the body must be a JSON object.")
    if is_deeper(found, max_depth):
        raise wrong(f"the body is nested deeper than {max_depth} levels.")
    if _ESCAPED_SURROGATE.search(raw) is None:
        return found
    cleaned: Body = _cleaned(found)
    return cleaned


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:30]} is too large")
    return number


def _integer(text: str) -> int:
    if len(text) > 20 or not -_LARGEST_INTEGER <= int(text) < _LARGEST_INTEGER:
        raise ValueError(f"the number {text[:30]} is too large")
    return int(text)


def _cleaned(value: Any) -> Any:
    """Return data without lone surrogates."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {valid_text(name): _cleaned(each) for name, each in value.items()}
    return value


class Fields:
    """Typed access to the fields of a request; a missing field and ``null`` are the same.

    Args:
        body: The request.
    """

    def __init__(self, body: Body) -> None:
        self.body = body

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.body.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise wrong(f"{name} must be a string, got {_kind(value)}.")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value, False if it is missing."""
        value = self.body.get(name)
        if not isinstance(value, bool | None):
            raise wrong(f"{name} must be true or false, got {_kind(value)}.")
        return bool(value)

    def integer(self, name: str, low: int, high: int | None = None) -> int | None:
        """Return an integer of a range."""
        value = self.body.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong(f"{name} must be an integer, got {_kind(value)}.")
        if value < low or (high is not None and value > high):
            raise wrong(f"{name} must be at least {low}" + (f" and at most {high}" if high is not None else "") + ".")
        return value

    def number(self, name: str, low: float, high: float) -> float | None:
        """Return a number of a range."""
        value = self.body.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(f"{name} must be a number, got {_kind(value)}.")
        if not low <= value <= high:
            raise wrong(f"{name} must be between {low:g} and {high:g}, got {value:g}.")
        return float(value)

    def items(self, name: str) -> list[Any]:
        """Return a list, empty if it is missing."""
        value = self.body.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise wrong(f"{name} must be a list, got {_kind(value)}.")
        return value

    def object(self, name: str) -> Body:
        """Return an object, empty if it is missing."""
        value = self.body.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(f"{name} must be an object, got {_kind(value)}.")
        return value


def objects(values: list[Any], name: str) -> list[Body]:
    """Return the items of a list, all of which are objects.

    Raises:
        Refusal: One is not.
    """
    for place, value in enumerate(values):
        if not isinstance(value, dict):
            raise wrong(f"{name}[{place}] must be an object, got {_kind(value)}.")
    return values


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a truth value"
    names = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return names.get(type(value), "null")


__all__ = ["Fields", "Refusal", "objects", "read_object"]
