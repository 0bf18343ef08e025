"""Validates that the results of an environment fit into a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from turngym.arithmetic import as_float, is_finite
from turngym.columns import valid_columns
from turngym.errors import NotFinite
from turngym.text import valid_text
from turngym.types import INFO_TYPES, UNKNOWN

_DEEPEST = 32
_ATOMS = frozenset((str, int, float, bool, type(None)))


def require_fitting(env: gymnasium.Env[Any, Any], observation: Any, info: Any) -> dict[str, Any]:
    """Raise where a result does not fit into a batch, so that only its own slot has a fault.

    Returns:
        The info as a plain dict, whatever a subclass of dict does when it is read. It shares no arrays and containers
        with the environment, which may write into them at its next step.
    """
    if not isinstance(info, dict):
        raise TypeError(f"info must be a dict, got {type(info).__name__}")
    if not fits(env.observation_space, observation):
        raise ValueError(f"the observation {_shown(observation)} does not fit {env.observation_space}")
    return {key: copied(value) for key, value in dict.items(info)}


def copied(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value whose arrays, dicts, lists and tuples are copies; anything else in it is shared.

    Args:
        value: The value.
        depth: Levels that are copied.

    >>> buffer = np.zeros(2)
    >>> kept = copied({"board": buffer, "moves": [buffer]})
    >>> buffer += 1
    >>> kept
    {'board': array([0., 0.]), 'moves': [array([0., 0.])]}
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if depth and type(value) is dict:
        return {key: copied(each, depth - 1) for key, each in value.items()}
    if depth and type(value) in (list, tuple):
        if _ATOMS.issuperset(map(type, value)):  # long lists of legal actions, mostly
            return value[:]
        return type(value)(copied(each, depth - 1) for each in value)
    return value


def fits(space: gymnasium.Space[Any], observation: Any) -> bool:
    """Return whether an observation has the shape that its space says; numbers are not compared with their limits.

    >>> from gymnasium.spaces import Box, Dict
    >>> space = Dict(a=Box(0, 1, (2,)))
    >>> fits(space, {"a": np.zeros(2)}), fits(space, {"a": np.zeros(3)}), fits(space, None)
    (True, False, False)
    """
    if isinstance(space, spaces.Dict):
        is_dict = isinstance(observation, Mapping) and observation.keys() == space.spaces.keys()
        return is_dict and all(fits(part, observation[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        is_tuple = isinstance(observation, tuple) and len(observation) == len(space.spaces)
        return is_tuple and all(fits(part, each) for part, each in zip(space.spaces, observation, strict=True))
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        return observation is not None and np.shape(observation) == space.shape
    return bool(space.contains(observation))


def finite_reward(reward: Any) -> float:
    """Return a reward as a float.

    Raises:
        TypeError: It is not a number.
        NotFinite: It is not finite.

    >>> finite_reward(np.float32(0.5))
    0.5
    """
    if not _is_number(reward):
        raise TypeError(f"the reward must be a number, got {_shown(reward)}")
    number = as_float(reward)
    if not math.isfinite(number):
        raise NotFinite(f"the reward {number}")
    return number


def flag(name: str, value: Any) -> bool:
    """Return ``terminated`` or ``truncated`` as a bool; texts and None are none."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return bool(value)
    raise TypeError(f"{name} must be a bool, got {_shown(value)}")


def valid_table(info: dict[str, Any]) -> dict[str, Any]:
    r"""Return an info table whose texts UTF-8 can hold; one without a lone surrogate is returned as it is.

    Raises:
        TypeError: A value of the table of :class:`turngym.types.Info` is of a wrong type; one may be absent. Or the
            columns are not what :func:`turngym.columns.valid_columns` takes.
        NotFinite: A part of the reward is not finite.

    >>> valid_table({"anchor": "a\ud800", "legal_actions": ("up\udfff",), "score": 1.0})
    {'anchor': 'a�', 'legal_actions': ('up�',), 'score': 1.0}
    """
    try:
        score, progress, success, anchor = info["score"], info["progress"], info["success"], info["anchor"]
        legal = "".join(info["legal_actions"])  # raises where one is not text: the cheapest way to look at all of them
        if (
            type(anchor) is str
            and type(info["fault"]) is str
            and type(info["action_is_valid"]) is bool
            and type(info["legal_actions"]) is tuple
            and type(success) is int
            and -1 <= success <= 1
            and type(score) is float
            and math.isfinite(score)
            and (type(progress) is float or progress is UNKNOWN)
            and not math.isinf(progress)
            and "reward_components" not in info
            and "columns" not in info
        ):
            is_plain = len(info) == _NUM_KEYS and legal.isascii() and anchor.isascii()
            return info if is_plain else _valid_table(info)
    except (KeyError, TypeError):
        pass  # found again below, where it gets its name
    for key, (is_right, expected) in _TABLE.items():
        if key in info and not is_right(info[key]):
            raise TypeError(f"info[{key!r}] must be {expected}, got {_shown(info[key])}")
    for name, part in info.get("reward_components", {}).items():
        if not is_finite(part):
            raise NotFinite(f"the reward part {name!r} of {as_float(part)}")
    if "columns" in info:
        info = {**info, "columns": valid_columns(info["columns"])}
    return _valid_table(info)


def valid_observation(observation: Any) -> Any:
    r"""Return an observation whose texts UTF-8 can hold; one without a lone surrogate is returned as it is.

    >>> valid_observation({"text": "a\ud800", "image": None})
    {'text': 'a�', 'image': None}
    """
    if isinstance(observation, str):
        return observation if observation.isascii() else valid_text(observation)
    if isinstance(observation, dict) and not all(v.isascii() for v in observation.values() if isinstance(v, str)):
        return {key: valid_observation(value) for key, value in observation.items()}
    return observation


def _valid_table(info: dict[str, Any]) -> dict[str, Any]:
    texts = "".join(info.get("legal_actions", ()))
    for value in info.values():
        if type(value) is str and not value.isascii():
            texts = value
    return info if texts.isascii() else {key: _valid(value) for key, value in info.items()}


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, tuple | list) and value and all(isinstance(each, str) for each in value):
        return tuple(valid_text(each) for each in value)
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return True
    return not isinstance(value, str | bytes) and bool(getattr(value, "shape", None) == ())


def _is_finite(value: Any) -> bool:
    return _is_number(value) and is_finite(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and not math.isinf(as_float(value))


def _is_success(value: Any) -> bool:
    return isinstance(value, int | np.integer | np.bool_) and int(value) in (-1, 0, 1)


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(each, str) for each in value)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and _is_number(v) for k, v in value.items())


_TABLE: dict[str, tuple[Callable[[Any], bool], str]] = {
    "anchor": (lambda value: isinstance(value, str), "a str"),
    "legal_actions": (_are_texts, "a tuple of str"),
    "action_is_valid": (lambda value: isinstance(value, bool | np.bool_), "a bool"),
    "success": (_is_success, "-1, 0 or 1"),
    "progress": (_is_share, "a number, nan where it is unknown"),
    "score": (_is_finite, "a finite number"),
    "fault": (lambda value: isinstance(value, str), "a str"),
    "reward_components": (_are_numbers, "a dict of numbers"),
}
_NUM_KEYS = len(INFO_TYPES)


def _shown(value: Any) -> str:
    """Return a short text of a value, whatever its own methods do."""
    try:
        return repr(value)[:60]
    except Exception:  # user code: the value is foreign
        return f"a {type(value).__name__} that cannot be shown"
