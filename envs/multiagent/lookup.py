"""Finding classes that are named as ``"module:Class"``."""

from __future__ import annotations

import importlib
import inspect
from typing import TypeVar

from turngym.errors import ConfigError, UnknownName

T = TypeVar("T")


def class_at(path: str, base: type[T]) -> type[T]:
    """Return the class that a path names.

    Args:
        path: ``"module:Class"``.
        base: What the class must derive from.

    Raises:
        UnknownName: There is no such module or class.
        ConfigError: It is no class of that kind, or lacks methods.

    >>> class_at("turngym.envs.multiagent.players:RandomPlayer", object).__name__
    'RandomPlayer'
    """
    kind = base.__name__
    module, _, name = path.partition(":")
    if not module or module.startswith(".") or not name:
        raise UnknownName(f"no {kind.lower()} {path!r}. Write it as 'module:Class'.")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise UnknownName(f"no {kind.lower()} {path!r}: {error}. Write it as 'module:Class'.") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(f"{path!r} is no {kind}: derive it from {base.__module__}.{kind}.")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ConfigError(f"{path!r} is not complete: define {missing}.")
    return found
