"""The settings of a run as stored in its folder: complete, so that changed defaults do not affect old runs."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.trainers.algorithms import parts
from turngym.trainers.settings.config import TrainConfig, config_from_json

_KEY = "algorithm_defaults"
_OLDEST = Path(__file__).parent / "data" / "defaults-0.1.0.json"


def config_to_store(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as a value that JSON can hold, with the algorithm's defaults of today beside them."""
    defaults = {part: _defaults(kind) for part, kind in parts(config.algorithm)}
    return {**config.as_json(), _KEY: defaults}


def config_from_store(content: Mapping[str, Any]) -> TrainConfig:
    """Return the settings that a run folder keeps, also one that an earlier version wrote.

    An option that was left at its default keeps the value that it had then. Folders of version 0.1.0 name no defaults;
    theirs are known.

    Args:
        content: What ``config.json`` holds.
    """
    values = dict(content)
    recorded = values.pop(_KEY, None)
    config = config_from_json(values)
    changed = _changed(config.algorithm, _defaults_of_0_1_0() if recorded is None else recorded)
    chosen = {part: {**changed.get(part, {}), **config.algorithm_options.get(part, {})} for part in changed}
    return dataclasses.replace(config, algorithm_options={**config.algorithm_options, **chosen})


def options_of_0_1_0(algorithm: str) -> dict[str, dict[str, Any]]:
    """Return part -> the settings whose defaults have changed since version 0.1.0, with the values that they had then.

    >>> options_of_0_1_0("dapo+epo")
    {'dapo': {'entropy_coef': 0.01, 'invalid_penalty': 0.1}}

    Args:
        algorithm: Name of the algorithm; a custom method has none.
    """
    return _changed(algorithm, _defaults_of_0_1_0())


def _changed(algorithm: str, defaults: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part, kind in parts(algorithm):
        today = _defaults(kind)
        before = {key: value for key, value in defaults.get(part, {}).items() if key in today and value != today[key]}
        if before:
            found[part] = before
    return found


def _defaults(kind: type[Any]) -> dict[str, Any]:
    default = kind()
    values = {field.name: getattr(default, field.name) for field in dataclasses.fields(kind)}
    found: dict[str, Any] = json.loads(json.dumps(values))
    return found


@functools.cache
def _defaults_of_0_1_0() -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(_OLDEST.read_text("utf8"))
    return found
