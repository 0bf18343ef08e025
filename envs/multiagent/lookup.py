"""Finding classes that are named as ``"module:Class"`` or ``"path/to/file.py:Class"``."""

from __future__ import annotations

import inspect
from typing import TypeVar

from turngym.errors import ConfigError, UnknownName
from turngym.loading import Wanted, load_object, split_place

T = TypeVar("T")


def class_at(path: str, base: type[T]) -> type[T]:
    """Return the class that a path names.

    Args:
        path: ``"module:Class"`` or ``"path/to/file.py:Class"``.
        base: Required base class.

    Raises:
        UnknownName: There is no such module or class.
        ConfigError: It is not a class of that kind, or lacks methods.

    >>> class_at("turngym.envs.multiagent.players:RandomPlayer", object).__name__
    'RandomPlayer'
    """
    kind = base.__name__
    if not split_place(path)[0]:
        raise UnknownName(f"no {kind.lower()} {path!r}. Write it as 'module:Class' or 'path/to/file.py:Class'.")
    wanted = Wanted(f"a {kind}", f"a class of {base.__module__}.{kind}", lambda found: _is_kind(found, base))
    found: type[T] = load_object(path, wanted)
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ConfigError(f"{path!r} is not complete: define {missing}.")
    return found


def _is_kind(found: object, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)
