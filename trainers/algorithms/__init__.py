"""Training methods by name; ``grpo+epo`` is a base method and the modifiers around it.

A name is a registered one, ``module:Class``, or ``path/to/file.py:Class``; README.md explains how to write one.
Importing this package does not import torch; the first look-up of a name does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turngym.errors import ConfigError, nearest
from turngym.registry import Registry

if TYPE_CHECKING:
    from turngym.trainers.core.algorithm import Algorithm

PUBLISHED = {
    "asymre": "--algorithm opmd --opmd.shift -0.1",
    "flow_grpo": "--algorithm dr_mas --dr_mas.by role --dr_mas.over rows",
    "matpo": "--algorithm m_grpo --m_grpo.calls root",
}
"""Published methods that are settings of others."""
ALGORITHMS: Registry[type[Algorithm[Any]]] = Registry(
    "algorithm", "turngym.trainers.algorithms", extra="train", settings=PUBLISHED
)
LEARNERS: Registry[type[Algorithm[Any]]] = Registry("algorithm", "turngym.trainers.learners", extra="train")
"""Methods with a learner of their own, whose updates are not a loss over the sampled tokens."""
_DEFAULT_BASE = "ppo"


def parts(name: str) -> tuple[tuple[str, type[Any]], ...]:
    """Return the names that a composition is made of, base method first, each with its configuration class.

    A modifier on its own modifies ``ppo``. A class of a module or file is named by the part after the colon.

    Raises:
        UnknownName: A part is not registered.
        ConfigError: The order is wrong, or a part occurs twice.

    >>> [part for part, config in parts("epo")]
    ['ppo', 'epo']
    """
    return tuple((part, method.Config) for part, method in _located(name))


def _located(name: str) -> list[tuple[str, type[Algorithm[Any]]]]:
    """Return the short names that a composition is made of, base method first, each with its class."""
    from turngym.trainers.algorithms.base.modifier import Modifier
    from turngym.trainers.algorithms.base.naming import locate

    found = [locate(part) for part in name.split("+")]
    if issubclass(found[0][1], Modifier):
        found.insert(0, locate(_DEFAULT_BASE))
    for extra, method in found[1:]:
        if not issubclass(method, Modifier):
            raise ConfigError(
                f"{name!r} has the method {extra!r} after a '+', where only modifiers may stand: "
                f"{', '.join(key for key, item in ALGORITHMS.items() if issubclass(item, Modifier))}."
            )
    if len(found) > 1 and found[0][0] in LEARNERS:
        raise ConfigError(f"{found[0][0]} has no loss that a modifier could change, got {name!r}: leave out the rest.")
    if len(dict(found)) < len(found):
        raise ConfigError(f"{name!r} names a part twice. Name each part once.")
    return found


def build(name: str, configs: Mapping[str, Any] | None = None) -> Algorithm[Any]:
    """Return the algorithm for a name such as ``gigpo`` or ``grpo+epo``.

    Args:
        name: A method, or methods joined by ``+``: one base method, then modifiers from the inside out.
        configs: Name of a part -> its configuration object, or a mapping of its fields; defaults where absent.

    Raises:
        UnknownName: A part is not registered.
        ConfigError: The composition or a configuration makes no sense.
    """
    from turngym.trainers.algorithms.base.modifier import Modifier

    (first, method), *modifiers = _located(name)
    chosen = dict(configs or {})
    unknown = chosen.keys() - {first} - {part for part, _ in modifiers}
    if unknown:
        raise ConfigError(
            f"{name!r} has no part {', '.join(sorted(unknown))} to configure. Parts: {_part_names(name)}."
        )
    algorithm = method(_config(method.Config, chosen.get(first, {})))
    for part, modifier in modifiers:
        assert issubclass(modifier, Modifier)  # nothing else was let through
        algorithm = modifier(_config(modifier.Config, chosen.get(part, {})), algorithm)
    return algorithm


_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "str": ("a text", (str,)),
}
"""Annotation of a setting -> what it must be, and the types of that."""


def _config(config_class: type[Any], settings: Any) -> Any:
    if not isinstance(settings, Mapping):
        if not isinstance(settings, config_class):
            raise ConfigError(f"expected a {config_class.__name__} or a mapping of its fields, got {settings!r}.")
        return settings
    known = {field.name: getattr(field.type, "__name__", field.type) for field in dataclasses.fields(config_class)}
    for key, value in settings.items():
        if key not in known:
            raise ConfigError(f"{config_class.__name__} has no setting {key!r}. {nearest(key, known)}")
        expected, kinds = _KINDS.get(str(known[key]), ("", ()))
        if kinds and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise ConfigError(f"{key} of {config_class.__name__} must be {expected}, got {value!r}.")
    return config_class(**settings)


def _part_names(name: str) -> str:
    """Return the parts of a composition as a list in words."""
    return ", ".join(part for part, _ in parts(name))


def check_group_size(algorithm: Algorithm[Any], group_size: int) -> None:
    """Raise for a group size of 1 if a method compares the episodes of a group.

    Raises:
        ConfigError: The method needs groups and they have one member.
    """
    from turngym.trainers.core.algorithm import Need

    if group_size < 1:
        raise ConfigError(f"group_size must be at least 1, got {group_size}.")
    if Need.GROUPS in algorithm.needs and group_size < 2:
        base = getattr(algorithm, "innermost", algorithm)
        name = next((key for key, item in ALGORITHMS.items() if item is type(base)), type(base).__name__)
        raise ConfigError(
            f"{name} compares the episodes of a group, got group_size=1. Pass group_size=2 or more, "
            f"or an algorithm without groups such as {_DEFAULT_BASE}."
        )
