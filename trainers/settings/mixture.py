"""Mixtures: several environments in one run, with weights and per-environment settings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from turngym.arithmetic import float_sum
from turngym.errors import ConfigError
from turngym.options import OptionError

if TYPE_CHECKING:
    from turngym.trainers.settings.config import TrainConfig

OF_AN_ENVIRONMENT = (
    "algorithm",
    "algorithm_options",
    "env_options",
    "wrappers",
    "start",
    "rollout.format",
    "rollout.prompt",
    "rollout.max_new_tokens",
    "rollout.backend",
    "rollout.num_workers",
    "evaluation.episodes",
    "evaluation.curve_episodes",
    "self_play",
)
"""Settings that may differ between environments; a section includes all its settings."""
_VERSION = re.compile(r"-v[0-9]+$")
_OTHER = re.compile(r"[^\w-]+")


class Member(NamedTuple):
    """An environment of a run.

    Args:
        label: Short name in metrics, evaluations and ``per_env``; empty for the only environment of a run.
        weight: Weight of its groups.
        config: Settings of a run on it alone.
    """

    label: str
    weight: float
    config: TrainConfig


def labels_of(envs: Sequence[str]) -> tuple[str, ...]:
    """Return a short, unique name for each environment.

    >>> labels_of(["turngym/FrozenLake-v0", "climb.py:Climb"])
    ('FrozenLake', 'Climb')
    >>> labels_of(["turngym/FrozenLake-v0", "turngym/FrozenLake-v1"])
    ('FrozenLake-v0', 'FrozenLake-v1')
    """
    found = [_OTHER.sub("-", re.split("[/:]", name)[-1]) for name in envs]
    short = [_VERSION.sub("", name) for name in found]
    for names in (short, found):
        if len(set(names)) == len(names):
            return tuple(names)
    return tuple(_OTHER.sub("-", name) for name in envs)


def members_of(config: TrainConfig) -> tuple[Member, ...]:
    """Return the environments of a run, one without a mixture.

    Raises:
        ConfigError: The settings are inconsistent.
    """
    if not config.envs:
        return (Member("", 1.0, config),)
    labels = labels_of(config.envs)
    weights = config.weights or (1.0,) * len(labels)
    shared = {**config.as_json(), "envs": (), "weights": (), "per_env": {}}
    found = []
    for label, name, weight in zip(labels, config.envs, weights, strict=True):
        own = config.per_env.get(label, {})
        options = {} if "algorithm" in own else shared["algorithm_options"]  # they belong to another method
        values = _merged({**shared, "env": name, "algorithm_options": options}, own)
        found.append(Member(label, weight, type(config).build(f"{label} (per_env)", values)))
    return tuple(found)


def require_mixture(envs: Sequence[str], weights: Sequence[float], per_env: Mapping[str, Any]) -> None:
    """Raise unless environments, weights and settings are consistent.

    Raises:
        OptionError: They are inconsistent.

    >>> require_mixture(["a", "b"], [1.0], {})
    Traceback (most recent call last):
    turngym.options.OptionError: weights must be one for each of the 2 environments, got 1.
    """
    if not envs:
        for name, value in (("weights", weights), ("per_env", per_env)):
            if value:
                raise OptionError(name, "is for several environments: pass --env A B, or leave it out.")
        return
    if len(envs) == 1:
        raise OptionError("envs", "must be several environments: pass one as env.")
    if twice := [name for name, count in Counter(envs).items() if count > 1]:
        raise OptionError("envs", f"must be different, got {twice[0]} twice: give it a larger weight instead.")
    _require_weights(envs, weights)
    labels = labels_of(envs)
    for label, settings in per_env.items():
        if label not in labels:
            raise OptionError("per_env", f"names {label!r}, which is none of {', '.join(labels)}.")
        for name in _names(label, settings):
            if not any(f"{name}.".startswith(f"{allowed}.") for allowed in OF_AN_ENVIRONMENT):
                raise OptionError(
                    "per_env",
                    f"cannot set {name} for {label}: it is the same for all environments of a run. These may differ: "
                    f"{', '.join(OF_AN_ENVIRONMENT)}.",
                )


def _require_weights(envs: Sequence[str], weights: Sequence[float]) -> None:
    if weights and len(weights) != len(envs):
        raise OptionError("weights", f"must be one for each of the {len(envs)} environments, got {len(weights)}.")
    if wrong := [weight for weight in weights if not math.isfinite(weight) or weight < 0]:
        raise OptionError("weights", f"must be finite and at least 0, got {wrong[0]:g}.")
    if weights and not 0 < float_sum(weights) < math.inf:
        raise OptionError("weights", "must have a positive, finite sum: with 0 an environment is evaluated only.")


def _names(label: str, settings: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of settings; options that are tables are not expanded."""
    if not isinstance(settings, Mapping):
        raise OptionError("per_env", f"must be a table of settings for {label}, got {settings!r}.")
    for key, value in settings.items():
        name = f"{prefix}{key}"
        is_section = any(allowed.startswith(f"{name}.") for allowed in OF_AN_ENVIRONMENT)
        yield from _names(label, value, f"{name}.") if is_section else [name]


def _merged(values: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings overridden by others."""
    found = dict(values)
    for key, value in other.items():
        old = found.get(key)
        is_table = isinstance(old, Mapping) and isinstance(value, Mapping)
        found[key] = _merged(dict(old or {}), value) if is_table else value
    return found


def nested(pairs: Mapping[str, Any], option: str) -> dict[str, Any]:
    """Return values under dotted names as nested tables.

    Raises:
        ConfigError: A name is used as a value and as a table.

    >>> nested({"FrozenLake.env_options.size": 4, "FrozenLake.wrappers": ["compact"]}, "--per-env")
    {'FrozenLake': {'env_options': {'size': 4}, 'wrappers': ['compact']}}
    """
    found: dict[str, Any] = {}
    for name, value in pairs.items():
        *path, last = name.split(".")
        table = found
        for key in path:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{option} sets {key} as a value and as a table: leave one of them out.")
        old = table.get(last)
        if old is not None and isinstance(old, dict) != isinstance(value, dict):
            raise ConfigError(f"{option} sets {name} as a value and as a table: leave one of them out.")
        table[last] = _merged(old, value) if isinstance(old, dict) else value
    return found
