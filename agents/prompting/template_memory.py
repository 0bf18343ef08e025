"""A limit on the memory of chat templates: a text or list that would be too large is refused before it is made.

A template can make a gigabyte in one operation, which no limit of time interrupts: ``'a' * 10**9``, or text that is
joined with itself in a loop. Inside of :func:`size_limit`, transformers compiles templates in an environment that
counts what they make; elsewhere these count nothing.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils import chat_template_utils

_PERCENT = re.compile(r"%[-+ #0]*+(\d++|\*)?+(?:\.(\d++|\*))?+[a-zA-Z]")
_FIELD = re.compile(r"\{[^{}:]*+:([^{}]*+)\}")
_NESTED = re.compile(r"\{[^{}:]*+:[^{}]*+\{")
_WIDTH = re.compile(r"\d{4,18}")
_PADDED = {"center", "ljust", "rjust", "zfill", "to_bytes"}
_SHALLOW = {
    *("attr", "count", "d", "default", "dictsort", "first", "groupby", "items", "last", "length", "list", "map", "max"),
    *("min", "random", "reject", "rejectattr", "reverse", "select", "selectattr", "sort", "unique"),
}
"""Filters that make no text of what they are given."""
_state = threading.local()


@contextmanager
def size_limit(most: int, error: type[Exception]) -> Iterator[None]:
    """Raise an exception in this thread where templates would make more than so many characters and items.

    Takes a lock, so a limit of time has to start inside of it.

    Args:
        most: The number, of all operations together.
        error: Raised without arguments.
    """
    _counting.start()
    _state.left, _state.error = most, error
    try:
        yield
    finally:
        _state.left = None
        _counting.stop()


def _charge(size: int) -> None:
    left = getattr(_state, "left", None)
    if left is not None:
        _state.left = left - size
        if size > left:
            raise _state.error


def _size(value: Any) -> int:
    """Return the characters or items of a value, without those of its items."""
    if isinstance(value, int):
        return value.bit_length() // 8
    return len(value) if hasattr(value, "__len__") else 1


def _weight(value: Any) -> int:
    """Return about how many characters a value has as text; values that hold one another many times are never built."""
    left = getattr(_state, "left", None)
    if left is None or isinstance(value, str):
        return _size(value)
    total, waiting = 0, [value]
    while waiting and total <= left:
        each = waiting.pop()
        total += _size(each) + 1
        if isinstance(each, Mapping):
            waiting += [*each, *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each
    return total


def _power(left: Any, right: Any) -> int:
    return left.bit_length() * max(right, 0) // 8 if isinstance(left, int) and isinstance(right, int) else 0


def _product(left: Any, right: Any) -> int:
    if isinstance(left, int) and isinstance(right, int):
        return _size(left) + _size(right)
    number, repeated = (left, right) if isinstance(left, int) else (right, left)
    return max(number, 0) * _size(repeated) if isinstance(number, int) else 0


def _formatted(pattern: Any, given: Any) -> int:
    """Return about how long a text becomes that is formatted with ``%`` or ``format``."""
    if not isinstance(pattern, str):
        return 0
    widths = [each for found in _PERCENT.findall(pattern) for each in found]
    widths += [width for field in _FIELD.findall(pattern) for width in _WIDTH.findall(field)]
    total = sum(int(width) for width in widths if width.isdecimal()) + len(pattern) + _weight(given)
    if "*" in widths or _NESTED.search(pattern):
        total += sum(abs(each) for each in _numbers(given))
    return total


def _numbers(given: Any) -> list[int]:
    values = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else [given]
    return [each for each in values if isinstance(each, int)]


def _called(name: str, value: Any, given: list[Any]) -> int:
    """Return about how much a method or filter makes of a value; 0 for those that make no more than there was."""
    largest = max(_numbers(given), default=0)
    texts = [each for each in given if isinstance(each, str | bytes)]
    longest = max(map(len, texts), default=0)
    if name in _PADDED:
        return _weight(value) + largest
    if name == "expandtabs":
        return _size(value) * max(largest, 8)
    if name == "replace":
        return _weight(value) + _size(value) // max(len(texts[0]) if texts else 0, 1) * longest
    if name in ("format", "format_map"):
        return _formatted(value, given)
    if name in ("indent", "wordwrap", "batch", "slice"):
        lines = value.count("\n") + 1 if name == "indent" and isinstance(value, str) else _size(value)
        return _weight(value) + lines * max(largest, longest)
    if name == "join":
        return _weight(value) + longest * _size(value)
    if name == "translate" and given and isinstance(given[0], Mapping):
        return _size(value) * max(map(_size, given[0].values()), default=0)
    return 0 if name in _SHALLOW else _weight(value) * (1 + largest * (name == "tojson"))


class _Filters(dict[str, Callable[..., Any]]):
    """Filters that are charged for what they make, however they are set."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return _charged(name, super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name)
        return default if found is None else _charged(name, found)


@functools.lru_cache(maxsize=1000)
def _charged(name: str, filter: Callable[..., Any]) -> Callable[..., Any]:
    place = int(hasattr(filter, "jinja_pass_arg"))

    @functools.wraps(filter)
    def charged(*args: Any, **kwargs: Any) -> Any:
        given = [*args]
        if name == "join" and not hasattr(given[place], "__len__"):
            given[place] = list(given[place])  # a generator, such as of `map`
        _charge(_called(name, given[place], [*given[place + 1 :], *kwargs.values()]))
        return _made(filter(*given, **kwargs))

    return charged


def _made(value: Any) -> Any:
    if isinstance(value, str | bytes | list):
        _charge(len(value))
    return value


class _Generator(CodeGenerator):
    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class CountingEnvironment(ImmutableSandboxedEnvironment):
    """The environment of chat templates, which counts what they make."""

    code_generator_class = _Generator
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.filters = _Filters(self.filters)
        self.finalize = self._shown

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join the parts of an output."""
        found = []
        for part in parts:
            _charge(len(part))
            found.append(part)
        return "".join(found)

    def joined(self, parts: tuple[Any, ...]) -> str:
        """Join values with ``~``."""
        _charge(sum(map(_weight, parts)))
        return "".join(map(str, parts))

    def _shown(self, value: Any) -> Any:
        _charge(_weight(value))
        return value

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Do what an operator does."""
        if operator == "+":
            _charge(_size(left) + _size(right))
        else:
            _charge({"*": _product, "**": _power, "%": _formatted}[operator](left, right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method or function."""
        name = getattr(__obj, "__name__", "")
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", "")
        if name == "join" and args:
            args = ([*args[0]], *args[1:])
            owner, given = args[0], [owner]
        else:
            given = [*args, *kwargs.values()]
        if isinstance(owner, str | bytes | int) or name == "join":
            _charge(_called(name, owner, given))
        return _made(super().call(__context, __obj, *args, **kwargs))


class _Counting:
    """Lets transformers compile templates in :class:`CountingEnvironment` while any thread asks for it."""

    _NAME = "ImmutableSandboxedEnvironment"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._usual = getattr(chat_template_utils, self._NAME)

    def start(self) -> None:
        """Compile so from now on."""
        with self._lock:
            self._threads += 1
            setattr(chat_template_utils, self._NAME, CountingEnvironment)

    def stop(self) -> None:
        """Undo one start."""
        with self._lock:
            self._threads -= 1
            if not self._threads:
                setattr(chat_template_utils, self._NAME, self._usual)


_counting = _Counting()
