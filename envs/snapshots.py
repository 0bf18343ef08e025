"""Exact states of environments as JSON, restored atomically."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import gymnasium

from turngym.envs.settings import Configured
from turngym.errors import ConfigError, EpisodeOver, error_text
from turngym.types import INFO_TYPES, JSONValue

ObsT = TypeVar("ObsT")

_SNAPSHOT_FORMAT = 1
_LONGEST_TOLD = 300


class SnapshotEnv(Configured, gymnasium.Env[ObsT, str], ABC):
    """Base of :class:`turngym.envs.core.TextEnv` that saves and restores the state of an episode."""

    __slots__ = (  # with more than 30 others in its dict, an instance would not share keys: slow in large vectors
        "_action_is_valid",
        "_observation",
        "_running",
        "_success",
        "env_id",
        "instance",
        "max_turns",
        "settings",
        "turn",
    )
    env_id: str
    instance: str
    max_turns: int
    turn: int
    _action_is_valid: bool
    _observation: ObsT | None
    _running: bool
    _success: int

    @abstractmethod
    def save_state(self) -> JSONValue:
        """Return everything that ``load_state`` needs, as a JSON value."""

    @abstractmethod
    def load_state(self, state: JSONValue) -> None:
        """Restore a state returned by ``save_state``."""

    @abstractmethod
    def _info(self) -> dict[str, Any]:
        """Return the info table of the current turn."""

    def snapshot(self) -> bytes:
        """Return the exact state, including the generator, as JSON.

        Raises:
            EpisodeOver: No episode has started.
        """
        if self._observation is None:
            raise EpisodeOver(f"snapshot() of {self.env_id} before the first reset(): there is no state to save.")
        content = {
            "format": _SNAPSHOT_FORMAT,
            "env_id": self.env_id,
            "settings": self.settings,
            "instance": self.instance,
            "turn": self.turn,
            "running": self._running,
            "success": self._success,
            "action_is_valid": self._action_is_valid,
            "observation": self._observation,
            "generator": self.np_random.bit_generator.state,
            "state": self.save_state(),
        }
        return json.dumps(content, sort_keys=True).encode()

    def restore(self, snapshot: bytes) -> tuple[ObsT, dict[str, Any]]:
        """Restore a state saved by ``snapshot`` in this or another process.

        Returns:
            The observation and info as they were.

        Raises:
            ConfigError: The bytes are not a snapshot, are damaged, or belong to another environment or other options.
                The current episode is then unchanged.
        """
        content = self._read_snapshot(snapshot)
        before = None if self._observation is None else json.loads(self.snapshot())
        generator = self.np_random
        fresh = generator.bit_generator.state
        try:
            found = self._adopt(content)
            restored = json.loads(self.snapshot())
            require_same_content({**restored, "state": None}, {**content, "state": None})  # states may be put in order
            return found
        except Exception as error:  # any error from a damaged state rejects it
            self._np_random = generator
            self._go_back(before, fresh)
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"restore() of {self.env_id} got a damaged snapshot ({error_text(error)}): take a new one."
            ) from error

    def _go_back(self, before: dict[str, Any] | None, fresh: Mapping[str, Any]) -> None:
        """Return to the state before a rejected snapshot; without an episode if there was none."""
        self._running, self._observation = False, None
        if before is not None:
            self._adopt(before)
        else:
            self.instance, self.turn, self._success, self._action_is_valid = "", 0, -1, True
            self.np_random.bit_generator.state = fresh

    def _adopt(self, content: Mapping[str, Any]) -> tuple[ObsT, dict[str, Any]]:
        """Take over what a snapshot holds."""
        turn, success, instance = content["turn"], content["success"], content["instance"]
        running, is_valid = content["running"], content["action_is_valid"]
        if type(turn) is not int or not 0 <= turn <= self.max_turns or not isinstance(instance, str):
            raise ValueError(f"turn {turn!r} of the instance {instance!r}")
        if type(success) is not int or success not in (-1, 0, 1) or not isinstance(is_valid, bool):
            raise ValueError(f"success {success!r}, valid {is_valid!r}")
        if not isinstance(running, bool) or (running and (success != -1 or turn == self.max_turns)):
            raise ValueError(f"running {running!r} with success {success!r} at turn {turn!r} of {self.max_turns}")
        self.np_random.bit_generator.state = content["generator"]
        self.instance, self.turn, self._success, self._observation = instance, turn, success, content["observation"]
        self._running, self._action_is_valid = running, is_valid
        self.load_state(content["state"])
        info = self._info()
        wrong = [key for key, kind in INFO_TYPES.items() if not isinstance(info[key], kind)]
        if wrong or not isinstance(self._observation, str | dict):
            raise TypeError(f"wrong types in {wrong or 'the observation'}")
        return cast("ObsT", self._observation), info

    def _read_snapshot(self, snapshot: bytes) -> dict[str, Any]:
        """Return what a snapshot of this environment and these options holds."""
        try:
            content = json.loads(snapshot)
            found = content["format"], str(content["env_id"]), content["settings"]
            told = f"{found[1]} with {found[2]}"[:_LONGEST_TOLD]
            expected = _SNAPSHOT_FORMAT, self.env_id, json.loads(json.dumps(self.settings))
            is_ours = found == expected
        except Exception as error:  # untrusted bytes: anything may be raised
            raise ConfigError(f"restore() of {self.env_id} got bytes that are not a snapshot of turngym.") from error
        if not is_ours:
            raise ConfigError(f"this snapshot belongs to {told}, not to {expected[1]} with {expected[2]}.")
        return {**content, "env_id": self.env_id}  # where the class is now


def require_same_content(restored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that a restored state is saved exactly as it was given.

    Damaged values (truncated, rounded, or of another type) are often accepted silently, but saved differently.

    Args:
        restored: Content of a snapshot taken right after restoring.
        given: Content of the restored snapshot.

    Raises:
        ValueError: They differ; the message names the parts.

    >>> require_same_content({"turn": 1, "a": float("nan")}, {"turn": 1, "a": float("nan")})
    >>> require_same_content({"turn": 1}, {"turn": True, "more": 0})
    Traceback (most recent call last):
        ...
    ValueError: the restored state differs in more, turn
    """
    absent = object()
    differing = [
        key
        for key in sorted(restored.keys() | given.keys())
        if _text(restored.get(key, absent)) != _text(given.get(key, absent))
    ]
    if differing:
        raise ValueError(f"the restored state differs in {', '.join(differing)[:200]}")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=lambda _: "absent")
