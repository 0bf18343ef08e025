"""Trajectories as JSON-compatible data, exact in everything used for training."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.columns import as_columns
from turngym.errors import ConfigError

_LEFT_OUT = {"usage", "notes", "snapshot", "turns", "spec", "branch"}
_TUPLES = {"prompt_ids", "completion_ids", "logprobs", "entropies", "final_prompt_ids"}
_PICTURES = {"pictures", "final_pictures"}
"""Fields of PNG files, written in base64; left out if there are none."""
_FORMER = {
    "joint": "joint_view",
    "final_joint": "final_joint_view",
    "greedy_return": "greedy_return",
    "sampled_value": "sampled_value",
}
"""Fields of files from before columns existed -> the column that replaced them."""


def _plain(record: Any) -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record) if field.name not in _LEFT_OUT}
    if "columns" in values:
        values["columns"] = {name: _as_list(value) for name, value in values["columns"].items()}
    for name in _PICTURES & set(values):
        if files := values.pop(name):
            values[name] = [base64.b64encode(file).decode("ascii") for file in files]
    return {name: list(value) if name in _TUPLES else value for name, value in values.items()}


_DEFAULTS = {
    name: value for name, value in _plain(Turn("", "", "")).items() if name not in ("observation", "anchor", "action")
}
"""Field of a turn that may be left out -> its default."""


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _made(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: tuple(value) if name in _TUPLES else value for name, value in values.items()}
    for name in _PICTURES & set(found):
        found[name] = tuple(base64.b64decode(file) for file in found[name])
    columns: dict[str, Any] = {**as_columns(found.pop("components", {}))}
    for former, name in _FORMER.items():
        value = found.pop(former, "")
        if not (value == "" or (isinstance(value, float) and math.isnan(value))):
            columns[name] = value
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.get("columns", {}).items()
    }
    return {**found, "columns": {**columns, **given}}


def turn_to_json(turn: Turn) -> dict[str, Any]:
    """Return a turn without usage, notes and snapshot; default values are omitted."""
    values = _plain(turn)
    return {name: value for name, value in values.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}


def turn_from_json(content: Mapping[str, Any]) -> Turn:
    """Return a turn written by ``turn_to_json``."""
    return Turn(**_made(content))


def trajectory_to_json(trajectory: Trajectory) -> dict[str, Any]:
    """Return a trajectory without usage, notes and snapshots.

    Raises:
        ConfigError: It branches from another episode, whose turns would also be needed.

    >>> played = Trajectory(EpisodeSpec(0, 7), "X", turns=[Turn("", "", "go", completion_ids=(3,), logprobs=(-1.0,))])
    >>> trajectory_from_json(trajectory_to_json(played)) == played
    True
    """
    if trajectory.spec.branch is not None:
        raise ConfigError(f"episode {trajectory.spec.episode} branches off another one: keep whole episodes only.")
    turns = [_plain(turn) for turn in trajectory.turns]
    spec = _plain(trajectory.spec)
    if spec["options"] is not None:
        spec["options"] = dict(spec["options"])
    return {**_plain(trajectory), "spec": spec, "turns": turns}


def trajectory_from_json(content: Mapping[str, Any]) -> Trajectory:
    """Return the trajectory that ``trajectory_to_json`` wrote, in the current format or that from before columns."""
    values = _made(content)
    values["spec"] = EpisodeSpec(**content["spec"])
    values["turns"] = [turn_from_json(turn) for turn in content["turns"]]
    return Trajectory(**values)
