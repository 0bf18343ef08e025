"""What the name of a training method stands for: a registered one, or a class in a module or a file."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from turngym.envs.checks.source import load_file
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.trainers.algorithm import Algorithm
from turngym.trainers.algorithms import ALGORITHMS


def locate(name: str) -> tuple[str, type[Algorithm[Any]]]:
    """Return the short name of a method, under which it is configured, and its class.

    Args:
        name: A registered name, ``"module:Class"``, or ``"path/to/file.py:Class"``; what follows the colon may also be
            a name that the module registers.

    Raises:
        UnknownName: There is no such method, module, file, or class in it.
        ConfigError: It is no method.

    >>> locate("grpo")[0], locate("turngym.trainers.algorithms.grpo:GRPO")[0]
    ('grpo', 'GRPO')
    """
    place, colon, last = name.rpartition(":")
    if not colon:
        return name, ALGORITHMS[name]
    module = _module(place)
    found = getattr(module, last, None)
    if found is None and last in ALGORITHMS and ALGORITHMS[last].__module__ == module.__name__:
        found = ALGORITHMS[last]
    if found is None:
        known = [
            key for key, value in vars(module).items() if _is_method(value) and value.__module__ == module.__name__
        ]
        hint = nearest(last, known) if known else "It has no class of turngym.trainers.algorithm.Algorithm at all."
        raise UnknownName(f"{place} has no {last!r}. {hint}")
    if not _is_method(found):
        raise ConfigError(f"{last} of {place} must be a complete class of turngym.trainers.algorithm.Algorithm.")
    if not hasattr(found, "Config"):
        raise ConfigError(
            f"{last} of {place} has no Config: name the frozen dataclass of its settings, as in Config = X."
        )
    return last, found


def _is_method(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Algorithm) and not inspect.isabstract(item)


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        module: ModuleType = load_file(Path(place))
        return module
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UnknownName(
            f"no module named {error.name or place!r}, where the method was to be found: check the spelling, install "
            "it, or write path/to/file.py:Class."
        ) from error
