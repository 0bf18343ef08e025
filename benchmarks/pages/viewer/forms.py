"""Episodes in the one form that the viewer shows, made of the different records that are on disk.

A form is an object of JSON: ``facts`` (pairs of texts), ``notes``, ``fault``, ``turns``, ``final``, and ``replay``
(what the episode can be played again from). A turn has ``seen``, ``completion``, ``action``, ``reward``, ``valid``, and
where they were recorded ``prompt``, ``tokens`` with ``logprobs`` and ``advantages``, ``image``, and ``more`` facts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from turngym.benchmarks.pages.viewer.jsonl import items, mapping, number, text

Form = dict[str, Any]

_BASE64 = re.compile("[A-Za-z0-9+/]+={0,2}")
_PREFIX, _PNG = "data:image/png;base64,", "iVBORw0KGgo"
_FACTS = {
    "env": "environment",
    "options": "options",
    "wrappers": "wrappers",
    "seed": "seed",
    "task": "task",
    "attempt": "attempt",
    "match": "match",
    "agent": "seat",
    "role": "role",
    "policy": "policy",
    "instance": "instance",
    "status": "status",
    "score": "score",
    "returns": "return",
    "success": "success",
    "length": "turns",
    "illegal": "invalid actions",
    "terminated": "terminated",
    "truncated": "truncated",
    "tokens_in": "prompt tokens",
    "tokens_out": "completion tokens",
    "winner": "winner",
    "verifier": "verifier",
    "started": "started",
    "ruleset_hash": "rules",
    "transcript_sha256": "transcript hash",
}
_TURN_KEYS = frozenset(
    {"observation", "prompt", "prompt_continues", "completion", "action", "reward", "action_is_valid", "tokens"}
    | {"logprobs", "advantages", "image", "notes"}
    | {"prompt_ids", "prompt_ids_continue", "completion_ids", "completion_logprobs"}
)


def facts_of(record: Mapping[str, Any]) -> list[list[str]]:
    """Return name and value of what is worth showing above the turns."""
    found = []
    for key, name in _FACTS.items():
        value = record.get(key)
        if value is None or value in ("", {}, []):
            continue
        if isinstance(value, float):
            value = f"{value:.6g}"
        found.append([name, text(value)])
    return found


def picture_of(value: Any) -> str:
    """Return an image as the address that a page can show; empty for everything but a PNG in base64.

    >>> picture_of("iVBORw0KGgoAAAAN")[:22], picture_of("javascript:alert(1)")
    ('data:image/png;base64,', '')
    """
    if not isinstance(value, str):
        return ""
    content = value.removeprefix(_PREFIX)
    return _PREFIX + content if content.startswith(_PNG) and _BASE64.fullmatch(content) else ""


def seen_of(observation: Any) -> dict[str, str]:
    """Return text and image of an observation.

    >>> seen_of({"text": "a board", "image": "uint8[8, 8, 3] 0f"})
    {'seen': 'a board'}
    """
    if isinstance(observation, dict) and "text" in observation:
        found = {"seen": text(observation["text"])}
        picture = picture_of(observation.get("image"))
        return {**found, "image": picture} if picture else found
    return {} if observation is None else {"seen": text(observation)}


def turn_form(turn: Mapping[str, Any]) -> Form:
    """Return a turn of a transcript or of a sample."""
    form: Form = seen_of(turn.get("observation"))
    for key in ("prompt", "completion", "action"):
        if turn.get(key) is not None:
            form[key] = text(turn[key])
    if turn.get("prompt_continues") is True:
        form["continues"] = True
    form["reward"] = number(turn.get("reward"))
    if isinstance(turn.get("action_is_valid"), bool):
        form["valid"] = turn["action_is_valid"]
    picture = picture_of(turn.get("image"))
    if picture:
        form["image"] = picture
    tokens, logprobs = items(turn.get("tokens")), items(turn.get("logprobs"))
    if tokens:
        form["tokens"] = [text(token) for token in tokens]
    for name, values in (("logprobs", logprobs), ("advantages", items(turn.get("advantages")))):
        if values:
            form[name] = [number(value) for value in values]
    notes = [note for note in items(turn.get("notes")) if isinstance(note, dict)]
    if notes:
        form["notes"] = [[text(note.get("purpose") or "note"), text(note.get("text"))] for note in notes]
    form["more"] = [[text(key), text(value)] for key, value in turn.items() if key not in _TURN_KEYS]
    return form


def transcript_form(record: Mapping[str, Any], row: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
    """Return an episode whose turns were written down.

    Args:
        record: The transcript.
        row: The line of the episode, if there is one apart from it.
        config: Further settings of the episode: ``options`` and ``wrappers``.
    """
    known = {**config, **record, **row}
    turns = [turn_form(turn) for turn in items(record.get("turns")) if isinstance(turn, dict)]
    return {
        "facts": facts_of(known),
        "notes": [],
        "fault": text(known.get("fault")),
        "turns": turns,
        "final": seen_of(record.get("final_observation")),
        "replay": replay_of(known, [turn.get("action", "") for turn in turns]),
    }


def row_form(row: Mapping[str, Any], config: Mapping[str, Any]) -> Form:
    """Return an episode of which only the actions were written down."""
    known = {**config, **row}
    actions = [text(action) for action in items(row.get("actions"))]
    return {
        "facts": facts_of(known),
        "notes": ["Only the actions were recorded. A replay shows what was seen."],
        "fault": text(known.get("fault")),
        "turns": [{"action": action, "reward": None, "more": []} for action in actions],
        "final": {},
        "replay": replay_of(known, actions),
    }


def replay_of(known: Mapping[str, Any], actions: Sequence[str]) -> Form | None:
    """Return what an episode can be played again from, with the command that starts it; None where that is unknown."""
    seed = known.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int) or not isinstance(known.get("env"), str):
        return None
    if known.get("is_game"):  # other seats played along, whose actions are not in it
        return None
    options = mapping(known.get("options"))
    wrappers = [each for each in items(known.get("wrappers")) if isinstance(each, str)]
    words = ["turngym", "play", known["env"], "--seed", str(seed)]
    for key, value in options.items():
        words += ["--option", f"{text(key)}={text(value)}"]
    for each in wrappers:
        words += ["--wrapper", each]
    return {
        "env": known["env"],
        "options": options,
        "wrappers": wrappers,
        "seed": seed,
        "actions": list(actions),
        "command": shlex.join(words),
        "has_pictures": options.get("image") is True,
    }


def broken_form(problem: str, raw: bytes) -> Form:
    """Return what there is to see of something that cannot be read: why, and how it starts."""
    begins = raw[:4000].decode("utf8", "replace")
    return {
        "facts": [["begins with", begins]],
        "notes": [],
        "fault": problem,
        "turns": [],
        "final": {},
        "replay": None,
    }


def as_json(content: Any) -> str:
    r"""Return content as JSON that can stand in any HTML page, inside of a script element too.

    >>> print(as_json({"a": "</script><!--", "b": float("nan")}))
    {"a": "\u003c/script>\u003c!--", "b": null}
    """
    try:
        found = json.dumps(content, allow_nan=False)
    except ValueError:
        found = json.dumps(_finite(content), allow_nan=False)
    return found.replace("<", "\\u003c")


def _finite(content: Any) -> Any:
    """Return content without numbers that JSON does not have."""
    if isinstance(content, float):
        return number(content)
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content
