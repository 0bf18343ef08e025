"""Parsing of OpenEnv server messages: pure functions of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from turngym.arithmetic import as_float, is_finite

Body = Mapping[str, Any]
FINDS_ACTION = "x-turngym-finds-action"
"""Key of an action's schema: the environment finds an action in a whole answer by a notation that its rules give."""
_BASE_FIELDS = ("done", "metadata", "reward")


class Reading(NamedTuple):
    """A parsed observation message.

    Args:
        text: Observation of the agent.
        reward: The reward of the turn; 0 if the message has none.
        terminated: Whether the rules ended the episode.
        truncated: Whether something else ended it; never together with ``terminated``.
        metadata: Further data from the server.
    """

    text: str
    reward: float
    terminated: bool
    truncated: bool
    metadata: Body


def action_field(schema: Body) -> str:
    """Return the field of an action that takes the text, empty if an action has more than one text field.

    Args:
        schema: JSON schema of the server's actions.

    >>> action_field({"properties": {"message": {"type": "string"}, "metadata": {"type": "object"}}})
    'message'
    >>> action_field({"properties": {"x": {"type": "integer"}, "y": {"type": "string"}}, "required": ["x", "y"]})
    ''
    """
    properties = schema.get("properties")
    fields = properties if isinstance(properties, Mapping) else {}
    texts = [name for name, field in fields.items() if isinstance(field, Mapping) and _is_free_text(field)]
    named = schema.get("required")
    required = [name for name in named if name != "metadata"] if isinstance(named, list) else []
    if len(required) == 1 and required[0] in texts:
        return str(required[0])
    return str(texts[0]) if not required and len(texts) == 1 else ""


def _is_free_text(field: Body) -> bool:
    return field.get("type") == "string" and not {"const", "enum"} & set(field)


def read_json_action(action: str) -> dict[str, Any] | None:
    """Parse an action text as a JSON object; None if it is not one.

    >>> read_json_action('{"x": 1}'), read_json_action("left")
    ({'x': 1}, None)
    """
    try:
        found = json.loads(action)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def observation_text(observation: Body, field: str = "") -> str:
    """Return what the agent sees.

    Args:
        observation: The observation of a message.
        field: The field to show. If empty: ``text``, else the only text field, else all fields.

    >>> observation_text({"echoed_message": "hi", "message_length": 2, "metadata": {}})
    'hi'
    >>> print(observation_text({"board": "..X", "hint": "go left", "moves": [1, 2]}))
    board: ..X
    hint: go left
    moves: [1, 2]
    """
    if field:
        return _shown(observation.get(field, ""))
    if isinstance(observation.get("text"), str):
        return str(observation["text"])
    fields = {name: value for name, value in observation.items() if name not in _BASE_FIELDS and value is not None}
    texts = [value for value in fields.values() if isinstance(value, str)]
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"{name}: {_shown(value)}" for name, value in fields.items())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_observation(data: Body, field: str = "") -> Reading:
    """Parse the data of an observation message.

    The protocol's ``done`` means terminated, unless the metadata say ``truncated``.

    Raises:
        ValueError: The reward is not a finite number.

    >>> read_observation({"observation": {"text": "you win"}, "reward": 1, "done": True})
    Reading(text='you win', reward=1.0, terminated=True, truncated=False, metadata={})
    """
    observation = data["observation"]
    metadata = data.get("metadata") or observation.get("metadata") or {}
    metadata = metadata if isinstance(metadata, Mapping) else {}
    reward = data.get("reward")
    reward = 0.0 if reward is None else as_float(reward)
    if not math.isfinite(reward):
        raise ValueError(f"the reward {reward} is not a finite number")
    done = bool(data.get("done"))
    truncated = done and metadata.get("truncated") is True and metadata.get("terminated") is not True
    return Reading(observation_text(observation, field), reward, done and not truncated, truncated, metadata)


def number(value: Any, default: float) -> float:
    """Return a number from the metadata; nan where the server sends null, the default where it is missing.

    >>> number(0.5, 0.0), number(None, 0.0), number("x", 0.25)
    (0.5, nan, 0.25)
    """
    if value is None:
        return math.nan
    return float(value) if isinstance(value, int | float) and is_finite(value) else default


def is_success(metadata: Body, reward: float, above: float | None) -> bool:
    """Return whether a terminated episode is solved: by its metadata, else by its last reward.

    Args:
        metadata: Metadata of the last observation.
        reward: The last reward.
        above: Threshold for the last reward where the metadata have no ``success``; None for no threshold.

    >>> is_success({"success": 0}, 1.0, 0.0), is_success({}, 1.0, 0.0), is_success({}, 1.0, None)
    (False, True, False)
    """
    for key in ("success", "is_success"):
        if metadata.get(key) in (0, 1):
            return bool(metadata[key])
    return above is not None and reward > above
