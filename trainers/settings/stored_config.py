"""The settings of a run as stored in its folder: complete, so that changed defaults do not affect old runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from turngym.trainers.algorithms import parts
from turngym.trainers.settings.config import TrainConfig

_KEY = "algorithm_defaults"


def config_to_store(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as a value that JSON can hold, with the algorithm's defaults of today beside them."""
    defaults = {part: _defaults(kind) for part, kind in parts(config.algorithm)}
    return {**config.as_json(), _KEY: defaults}


def config_from_store(content: Mapping[str, Any]) -> TrainConfig:
    """Return the settings that a run folder keeps, also one that an earlier version wrote.

    An option that was left at its default keeps the value that it had then.

    Args:
        content: Content of ``config.json``.
    """
    values = dict(content)
    recorded = values.pop(_KEY)
    config = TrainConfig.from_json(values)
    changed = _changed(config.algorithm, recorded)
    chosen = {part: {**changed.get(part, {}), **config.algorithm_options.get(part, {})} for part in changed}
    return dataclasses.replace(config, algorithm_options={**config.algorithm_options, **chosen})


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
