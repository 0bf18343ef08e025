"""Looking up training methods by name: registered ones, or classes in modules or files."""

from __future__ import annotations

import inspect
from typing import Any

from turngym.errors import ConfigError
from turngym.loading import Wanted, load_object, split_place
from turngym.trainers.algorithms import ALGORITHMS, LEARNERS
from turngym.trainers.core.algorithm import Algorithm


def _is_method(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Algorithm) and not inspect.isabstract(item)


_METHOD = Wanted("a training method", "a complete class of turngym.trainers.core.algorithm.Algorithm", _is_method)


def locate(name: str) -> tuple[str, type[Algorithm[Any]]]:
    """Return the short name of a method, under which it is configured, and its class.

    Args:
        name: A registered name, ``"module:Class"``, or ``"path/to/file.py:Class"``; what follows the colon may also be
            a name that the module registers.

    Raises:
        UnknownName: There is no such method, module, file, or class in it.
        ConfigError: It is not a method.

    >>> locate("grpo")[0], locate("turngym.trainers.algorithms.grpo:GRPO")[0]
    ('grpo', 'GRPO')
    """
    if not split_place(name)[0]:
        has_learner = name not in ALGORITHMS and name in LEARNERS
        return name, (LEARNERS if has_learner else ALGORITHMS)[name]
    found = load_object(name, _METHOD, ALGORITHMS)
    place, last = split_place(name)
    if not hasattr(found, "Config"):
        raise ConfigError(
            f"{last} of {place} has no Config: name the frozen dataclass of its settings, as in Config = X."
        )
    return last, found
