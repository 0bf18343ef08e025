"""The messages of OpenEnv's protocol (openenv 0.10), written and read without that package.

An action is ``{"message": text}``. An observation holds ``text``, a picture where there is one, and ``metadata``: the
info of the environment, and both ``terminated`` and ``truncated``, which the protocol's own ``done`` does not
distinguish.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import turngym
from turngym.arithmetic import is_finite
from turngym.envs.adapters.openenv_reading import FINDS_ACTION
from turngym.envs.png import png
from turngym.errors import nearest
from turngym.types import INFO_TYPES, JSONValue

Body = dict[str, Any]
LONGEST_ID = 255
_RESET_KEYS = ("seed", "episode_id", "task")
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_TEXT, _FREE = {"type": "string"}, {"type": "object", "additionalProperties": True}
_ENDED = {"terminated": {"type": "boolean"}, "truncated": {"type": "boolean"}}


class Refusal(Exception):
    """Error sent to a client instead of an observation; its session continues.

    Args:
        code: Error code of the protocol, such as ``"VALIDATION_ERROR"``.
        message: Error and remedy.
        **details: Further fields of the error message.
    """

    def __init__(self, code: str, message: str, **details: JSONValue) -> None:
        super().__init__(message)
        self.code, self.details = code, details

    def message(self) -> Body:
        """Return the error message.

        >>> Refusal("EXECUTION_ERROR", "no episode").message()
        {'type': 'error', 'data': {'message': 'no episode', 'code': 'EXECUTION_ERROR'}}
        """
        return {"type": "error", "data": {"message": str(self), "code": self.code, **self.details}}


def dump(content: JSONValue) -> str:
    r"""Return portable JSON: ASCII only, and None for numbers that are not finite.

    >>> dump({"progress": float("nan"), "text": "\ud800"})
    '{"progress":null,"text":"\\ud800"}'
    """
    try:
        return _ENCODER.encode(content)
    except ValueError:
        return _ENCODER.encode(_finite(content))


def _finite(value: JSONValue) -> JSONValue:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def read_message(raw: str | bytes) -> tuple[str, Body]:
    """Return type and data of a message of a client.

    Raises:
        Refusal: It is not a message of the protocol.

    >>> read_message('{"type": "step", "data": {"message": "up"}}')
    ('step', {'message': 'up'})
    """
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refusal("INVALID_JSON", f"Invalid JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("data", {}), dict):
        raise invalid("a message is an object with a type, and data that is an object too.", ())
    kind = message.get("type", "")
    if kind not in ("reset", "step", "state", "close"):
        raise Refusal("UNKNOWN_TYPE", f"Unknown message type: {str(kind)[:100]}")
    return kind, message.get("data", {})


def invalid(message: str, place: Iterable[str]) -> Refusal:
    """Return the refusal of a message whose content does not fit the schema, and where."""
    errors = [{"loc": list(place), "msg": message, "type": "value_error"}]
    return Refusal("VALIDATION_ERROR", f"Invalid message: {message}", errors=errors)


def read_action(data: Mapping[str, Any]) -> str:
    """Return the text of an action.

    Raises:
        Refusal: It has no text, or fields that are not known.

    >>> read_action({"message": "up", "metadata": {}})
    'up'
    """
    for key in data:
        if key not in ("message", "metadata"):
            raise invalid(f"an action has no field {key!r}. {nearest(key, ('message', 'metadata'))}", [key])
    text = data.get("message")
    if not isinstance(text, str):
        raise invalid(f'an action is {{"message": TEXT}}, got {type(text).__name__} for its text.', ["message"])
    return text


def read_reset(data: Mapping[str, Any]) -> tuple[int | None, str | None, str | int | None]:
    """Return seed, name of the episode and task of a reset.

    Raises:
        Refusal: One of them has the wrong type, or there are other keys.

    >>> read_reset({"seed": 7})
    (7, None, None)
    """
    for key in data:
        if key not in _RESET_KEYS:
            raise invalid(f"reset got {key!r}. {nearest(key, _RESET_KEYS)}", [key])
    seed, episode, task = (data.get(key) for key in _RESET_KEYS)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63):
        raise invalid(f"seed must be a whole number from 0 to 2**63 - 1, got {seed!r}.", ["seed"])
    if episode is not None and (not isinstance(episode, str) or len(episode) > LONGEST_ID):
        raise invalid(f"episode_id must be a string of at most {LONGEST_ID} characters.", ["episode_id"])
    if task is not None and (isinstance(task, bool) or not isinstance(task, str | int)):
        raise invalid(f"task must be a name or an index, got {task!r}.", ["task"])
    return seed, episode, task


def observation_data(
    observation: Any,
    info: Mapping[str, Any],
    reward: float | None = None,
    ended: tuple[bool, bool] = (False, False),
    more: Mapping[str, Any] | None = None,
) -> Body:
    """Return the data of an observation message.

    Args:
        observation: Text, or a mapping with ``text`` and ``image``.
        info: Info of the environment; only the keys that every environment has are sent.
        reward: None after a reset.
        ended: Whether the episode was terminated, and whether it was truncated.
        more: Further metadata.

    >>> data = observation_data("higher", {"score": 0.0}, 0.5, (False, True))
    >>> data["observation"]["text"], data["reward"], data["done"], data["metadata"]["truncated"]
    ('higher', 0.5, True, True)
    """
    metadata = {key: info[key] for key in INFO_TYPES if key in info}
    for key in ("progress", "score"):
        if key in metadata and not is_finite(metadata[key]):
            metadata[key] = None
    metadata["terminated"], metadata["truncated"] = ended
    if more:
        metadata.update(more)
    seen: Body = {"text": observation} if isinstance(observation, str) else {"text": str(observation["text"])}
    if not isinstance(observation, str) and "image" in observation:
        picture = base64.b64encode(png(observation["image"])).decode()
        seen["image"] = f"data:image/png;base64,{picture}"
    seen["metadata"] = metadata  # twice: clients differ in where they look for it
    return {"observation": seen, "reward": reward, "done": ended[0] or ended[1], "metadata": metadata}


def schemas(finds_action: bool = False) -> Body:
    """Return the JSON schemas of actions, observations and state.

    Args:
        finds_action: Whether the environment finds an action in a whole answer.

    >>> schemas()["action"]["required"]
    ['message']
    """
    observation = {
        "text": {**_TEXT, "description": "What the agent sees"},
        "image": {**_TEXT, "description": "A picture as a data URL, where the environment shows one"},
        "done": {"type": "boolean", "default": False},
        "reward": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "metadata": {**_FREE, "properties": _ENDED},
    }
    state = {"episode_id": {"anyOf": [_TEXT, {"type": "null"}]}, "step_count": {"type": "integer", "minimum": 0}}
    action = {"message": {**_TEXT, "description": "The action text"}, "metadata": {**_FREE, "default": {}}}
    found = {FINDS_ACTION: True} if finds_action else {}
    return {
        "action": _schema("TextAction", action, ["message"], is_closed=True) | found,
        "observation": _schema("TextObservation", observation, ["text"], is_closed=True),
        "state": _schema("State", state, [], is_closed=False),
    }


def _schema(title: str, properties: Body, required: list[str], *, is_closed: bool) -> Body:
    found: Body = {"title": title, "type": "object", "properties": properties, "required": required}
    return found | {"additionalProperties": not is_closed}


def openapi(name: str, paths: Mapping[tuple[str, str], str]) -> Body:
    """Return the OpenAPI document of a server.

    Args:
        name: Environment to serve.
        paths: (method, path) to what it does.

    >>> openapi("a game", {("get", "/health"): "Is it well?"})["paths"]["/health"]["get"]["summary"]
    'Is it well?'
    """
    found: Body = {}
    for (method, path), summary in paths.items():
        found.setdefault(path, {})[method] = {"summary": summary, "responses": {"200": {"description": "Done"}}}
    about = f"{name}, served by turngym {turngym.__version__} after the protocol of OpenEnv. Sessions: WebSocket /ws."
    return {"openapi": "3.1.0", "info": {"title": name, "version": "1.0.0", "description": about}, "paths": found}
