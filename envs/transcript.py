"""Transcripts: an episode as canonical text, so that equal episodes give byte-equal text.

The first line is JSON and says how to repeat the episode: environment id, its options, seed and reset options. Then
come the reset and the turns, one field a line. Texts of the environment stand in blocks whose lines begin with ``| ``;
characters that do not print are escaped, so a transcript holds nothing that an editor or git would change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np

from turngym.errors import ConfigError
from turngym.plugins import is_registered
from turngym.types import INFO_TYPES

Policy: TypeAlias = Callable[[Any, Mapping[str, Any]], str]
"""From observation and info to the next action text."""

_Rewrap: TypeAlias = Callable[[gymnasium.Env[Any, str], Sequence[Mapping[str, Any]]], gymnasium.Env[Any, str]]
"""Applies the wrappers named in a header to an environment, the first innermost."""

_FORMAT = "turngym transcript 1"
_ACTION = "action: "
_LONGEST_SHOWN = 1_500


def transcript(
    env: gymnasium.Env[Any, str],
    seed: int,
    actions: Sequence[str] | Policy,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Play one episode and return it as canonical text.

    Args:
        env: A :class:`turngym.envs.core.TextEnv`, or one under Gymnasium wrappers; its state is overwritten.
        seed: Seed of the reset.
        actions: The action texts, or a policy that picks each one. A sequence may end before the episode; the rest of
            it is ignored.
        options: Options of the reset.

    >>> import turngym
    >>> env = gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=4)
    >>> text = transcript(env, 0, ["4", "3", "2", "1"])
    >>> replay(text) == text
    True
    """
    observation, info = env.reset(seed=seed, options=dict(options or {}))
    parts = [_header_text(env, seed, options), reset_text(observation, info)]
    turn, is_over = 0, False
    while not is_over and (callable(actions) or turn < len(actions)):
        action = actions(observation, info) if callable(actions) else actions[turn]
        turn += 1
        observation, reward, terminated, truncated, info = env.step(action)
        parts.append(turn_text(turn, action, observation, float(reward), terminated, truncated, info))
        is_over = terminated or truncated
    return "\n".join(parts)


def opening_text(env: Any, seed: int, most_turns: int) -> tuple[str, str]:
    """Return who plays, the expert or a random player, and the start of an episode as text to read.

    Args:
        env: A :class:`turngym.envs.core.TextEnv`; its state is overwritten.
        seed: Seed of the reset, and of the random player.
        most_turns: Number of turns that are shown.
    """
    observation, info = env.reset(seed=seed)
    has_expert = _has_expert(env)
    blocks = [_shown("observation", observation)]
    generator, is_over, turn = np.random.default_rng(seed), False, 0
    while not is_over and turn < most_turns:
        legal = info["legal_actions"]
        sampled = legal[int(generator.integers(len(legal)))] if legal else ""
        action = env.expert_action() if has_expert else sampled
        observation, reward, terminated, truncated, info = env.step(action)
        blocks += [_shown("action", action), _shown(f"reward {reward:g}", observation)]
        is_over, turn = terminated or truncated, turn + 1
    ending = "terminated" if is_over else f"{turn} turns shown; the episode continues"
    success = f", success {info['success']}" if is_over else ""
    return "the expert" if has_expert else "a random player", "\n".join([*blocks, f"[{ending}{success}]"])


def _has_expert(env: Any) -> bool:
    try:
        env.expert_action()
    except ConfigError:
        return False
    return True


def _shown(label: str, observation: Any) -> str:
    text = str(observation["text"] if isinstance(observation, Mapping) else observation)
    return f"[{label}]\n{text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + ' (...)'}"


def replay(text: str, wrap: _Rewrap | None = None) -> str:
    """Replay a transcript from its first line and its actions, and return the new transcript.

    Args:
        text: The transcript.
        wrap: Puts the wrappers that the first line names around the environment;
            :func:`turngym.wrappers.recording.replay.rewrap` does.

    Raises:
        ConfigError: The text is not a transcript, or one of a wrapped environment and there is no ``wrap``.
    """
    head, *lines = text.split("\n")
    try:
        header = json.loads(head)
        if header["format"] != _FORMAT:
            raise ConfigError(
                f"this transcript has the format {header['format']!r}, expected {_FORMAT!r}: record it again."
            )
        env_id, settings, seed, options = (header[key] for key in ("env_id", "settings", "seed", "options"))
        wrappers = header.get("wrappers", [])
        actions = [json.loads(line.removeprefix(_ACTION)) for line in lines if line.startswith(_ACTION)]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"no transcript: the first line must be its JSON header, got {head[:80]!r}.") from error
    if not is_registered(env_id):  # never a "module:id", which would import what the text names
        raise ConfigError(f"this transcript is of {env_id!r}, which is not registered: import its module first.")
    if wrappers and wrap is None:
        raise ConfigError(
            "this transcript was played under wrappers: pass wrap=turngym.wrappers.recording.replay.rewrap to put them "
            "on again."
        )
    env = gymnasium.make(env_id, **settings)
    try:
        if wrap is not None:
            env = wrap(env, wrappers)
        return transcript(env, seed, actions, options)
    finally:
        env.close()


def _header_text(env: gymnasium.Env[Any, str], seed: int, options: Mapping[str, Any] | None = None) -> str:
    """Return the first line of a transcript, with its line break."""
    header = {"format": _FORMAT, **made_of(env), "seed": seed, "options": dict(options or {})}
    return json.dumps(header, ensure_ascii=True, sort_keys=True) + "\n"


def made_of(env: gymnasium.Env[Any, str]) -> dict[str, Any]:
    """Return what an environment can be made from again: its id, its options, and the wrappers of turngym, if any."""
    if not env.has_wrapper_attr("origin"):
        return {"env_id": env.get_wrapper_attr("env_id"), "settings": dict(env.get_wrapper_attr("settings"))}
    env_id, settings = env.get_wrapper_attr("origin")
    wrappers = env.get_wrapper_attr("wrappers")
    return {"env_id": env_id, "settings": dict(settings), **({"wrappers": wrappers} if wrappers else {})}


def reset_text(observation: Any, info: Mapping[str, Any]) -> str:
    """Return the part of a transcript that shows a reset."""
    return "reset\n" + _seen_text(observation, info)


def turn_text(
    turn: int,
    action: str,
    observation: Any,
    reward: float,
    terminated: bool,
    truncated: bool,
    info: Mapping[str, Any],
) -> str:
    """Return the part of a transcript that shows one turn.

    Args:
        turn: Number of the turn, the first one is 1.
        action: The action text.
        observation: Result of ``step``, as the following ones.
        reward: The reward.
        terminated: Whether the rules ended the episode.
        truncated: Whether something else ended it.
        info: The info table; entries that are not in :class:`turngym.types.Info` come last, by name.
    """
    lines = [
        f"turn {turn}",
        _ACTION + json.dumps(action, ensure_ascii=True),
        f"reward: {float(reward)!r}",
        f"terminated: {bool(terminated)}",
        f"truncated: {bool(truncated)}",
    ]
    return "\n".join(lines) + "\n" + _seen_text(observation, info)


def _seen_text(observation: Any, info: Mapping[str, Any]) -> str:
    """Return observation and info; an anchor equal to the observation is not written twice."""
    lines = ["observation:", *_block(_plain(observation))]
    if info["anchor"] == observation:
        lines.append("anchor: the observation")
    else:
        lines += ["anchor:", *_block(info["anchor"])]
    for name, kind in INFO_TYPES.items():
        if name != "anchor":
            value = kind(info[name])
            lines.append(f"{name}: {json.dumps(value) if kind in (str, tuple) else repr(value)}")
    lines += [f"info.{name}: {plain_json(info[name])}" for name in sorted(info.keys() - INFO_TYPES.keys())]
    return "\n".join(lines) + "\n"


def _block(text: str) -> list[str]:
    return [f"| {_printable(line)}" if line else "|" for line in text.split("\n")]


def _printable(line: str) -> str:
    """Escape what does not print, the backslash, and a blank at the end of the line."""
    shown = "".join([c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode("ascii") for c in line])
    return shown[:-1] + "\\x20" if shown.endswith(" ") else shown


def _plain(value: Any) -> str:
    """Return text as it is and everything else as JSON."""
    return value if isinstance(value, str) else plain_json(value)


def plain_json(value: Any) -> str:
    """Return a value as JSON with sorted keys; an array is given by type, shape and hash."""
    return json.dumps(value, default=_named, sort_keys=True)


def _named(value: Any) -> Any:
    """Return what stands for a value of NumPy: a number as it is, an array by type, shape and hash."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"{value.dtype}{list(value.shape)} {name}"
    raise TypeError(f"a transcript holds text, numbers and arrays of numbers, got {type(value).__name__}.")
