"""Base class of wrappers, whose state is declared, cleared by a reset and saved in snapshots.

A wrapper keeps per-episode state in ``self.state``, a dict of JSON values declared by ``initial_state`` and recreated
by every reset. State that outlasts an episode, such as a running mean, is in ``self.lasting``. Snapshots contain both.
In a vector, a faulted slot is recreated and loses its lasting state; other slots of the same worker keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from turngym.envs.settings import Declared
from turngym.envs.tools.tool_schema import ToolSet
from turngym.errors import ConfigError, EpisodeOver, error_text, nearest
from turngym.options import constructor_signature
from turngym.types import JSONValue
from turngym.wrappers.passing import Passing
from turngym.wrappers.snapshots import FORMAT, has_shape, parsed, plain, told, wrappers_in, written

Reset: TypeAlias = tuple[int | None, dict[str, Any] | None]
"""Seed and options of a reset."""


class ResetResult(NamedTuple):
    """A reset: the inner result, and the arguments."""

    observation: Any
    info: dict[str, Any]
    seed: int | None
    options: Mapping[str, Any]


class StepResult(NamedTuple):
    """A turn: the action text that reached the wrapper, and the inner result."""

    action: str
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]

    @property
    def is_over(self) -> bool:
        """True if the inner environment ended the episode."""
        return self.terminated or self.truncated


_NEEDED = ("env_id", "instructions", "settings", "snapshot")


class TextWrapper(Passing, RecordConstructorArgs, Declared):
    """A wrapper of a :class:`turngym.envs.core.TextEnv` that changes one thing and keeps its contract.

    Subclasses set ``name``, register under it, and override the hooks that they need: ``initial_state``,
    ``transform_reset``, ``on_reset``, ``transform_action``, ``on_step``, ``transform_observation``, ``on_restore``,
    ``extra_instructions`` and ``completion``. A wrapper that keeps state across resets sets ``lasting`` in
    ``__init__``.

    Args:
        env: An environment whose actions are text, wrapped or not.

    Raises:
        ConfigError: An option does not exist, or the environment is not turngym's.
    """

    name: ClassVar[str] = ""
    """The name that the wrapper is registered under."""
    is_transparent: ClassVar[bool] = False
    """True for a wrapper without effect on the episode, which snapshots ignore."""
    unchecked: ClassVar[frozenset[str]] = frozenset()
    """Options that may differ between saving and restoring a snapshot."""
    options: Mapping[str, Any]
    """The options of this wrapper, defaults included."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Record the options, so that a snapshot or a transcript can name the wrappers."""
        self = super().__new__(cls)
        signature = constructor_signature(cls)
        known = set(signature.parameters) - {"env"}
        for key in kwargs:
            if key not in known and (args or key != "env"):
                raise ConfigError(
                    f"the wrapper {cls.name or cls.__name__} has no option {key!r}. {nearest(key, known)}"
                )
        bound = signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        self.options = {key: value for key, value in bound.arguments.items() if key != "env"}
        self._saved_kwargs = dict(self.options)  # makes env.spec complete
        return self

    def __init__(self, env: gymnasium.Env[Any, str]) -> None:
        super().__init__(env)
        missing = [name for name in _NEEDED if not isinstance(env, Passing) and not env.has_wrapper_attr(name)]
        if missing:
            raise ConfigError(
                f"the wrapper {self.name} needs an environment of turngym, but {env} has no {missing[0]!r}: "
                "adapt it with turngym.envs.adapters first."
            )
        self.state: dict[str, Any] = self.initial_state()
        self.lasting: dict[str, Any] = {}
        self._is_running = False
        self._has_cut = False

    # The hooks, overridden by subclasses.

    def initial_state(self) -> dict[str, Any]:
        """Return the initial state of an episode as JSON values; options are not available yet."""
        return {}

    def transform_reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        """Return the seed and options to pass on; ``state`` still holds the last episode."""
        return seed, options

    def on_reset(self, result: ResetResult) -> None:
        """Update the state after a reset."""

    def transform_action(self, action: str) -> str:
        """Return the action text to pass on."""
        return action

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        """Update the state after a turn; return the reward, and True to truncate an unfinished episode."""
        return step.reward, False

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the observation, a function of ``state``; may replace entries of ``info``."""
        return observation

    def on_restore(self) -> None:
        """Called after ``state`` and ``lasting`` have been restored from a snapshot."""

    def extra_instructions(self) -> str:
        """Return the text to add to the instructions; empty for none."""
        return ""

    def completion(self, action: str) -> str:
        """Return the text for ``step`` that makes the inner environment receive ``action``."""
        return action

    # Provided by this class.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode, as :meth:`turngym.envs.core.TextEnv.reset` does."""
        inner_seed, inner_options = self.transform_reset(seed, options)
        observation, info = self.env.reset(seed=inner_seed, options=inner_options)
        self.state = self.initial_state()
        self._has_cut = False
        self._is_running = True
        self.on_reset(ResetResult(observation, info, seed, options or {}))
        return self.transform_observation(observation, info), info

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn, as :meth:`turngym.envs.core.TextEnv.step` does.

        Raises:
            EpisodeOver: The episode has ended or has not started.
            TypeError: The action is not a ``str``.
        """
        if not self._is_running:
            raise EpisodeOver(f"step() of {self.env_id} when no episode is running: call reset() first.")
        if not isinstance(action, str):
            raise TypeError(f"an action of {self.env_id} must be a string, got {type(action).__name__}: pass a str.")
        observation, reward, terminated, truncated, info = self.env.step(self.transform_action(action))
        step = StepResult(action, observation, float(reward), terminated, truncated, info)
        reward, is_cut = self.on_step(step)
        # Gymnasium's TimeLimit truncates an episode without a mark in its info
        is_untold = truncated and info["success"] < 0 and not self.is_transparent
        if is_untold or (is_cut and not step.is_over):
            truncated = self._has_cut = True
            _mark_cut(info)
        self._is_running = not (terminated or truncated)
        return self.transform_observation(observation, info), float(reward), terminated, truncated, info

    def snapshot(self) -> bytes:
        """Return the exact state of the environment and its wrappers, as JSON.

        Raises:
            EpisodeOver: No episode has started.
            SnapshotUnsupported: The inner environment cannot save its state.
        """
        inner = bytes(self._inner("snapshot")())
        own = {
            "format": FORMAT,
            "env_id": self.env_id,
            "settings": {"wrapper": self._checked},
            "state": self.state,
            "lasting": self.lasting,
            "is_running": self._is_running,
            "has_cut": self._has_cut,
        }
        return written(own)[:-1] + b', "inner": ' + inner + b"}"

    def restore(self, snapshot: bytes) -> tuple[Any, dict[str, Any]]:
        """Restore a state that ``snapshot`` saved, in this or another process.

        Returns:
            The observation and info as they were.

        Raises:
            ConfigError: The bytes are not a snapshot of this environment with these wrappers.
        """
        content = parsed(snapshot)
        before = self.state, self.lasting, self._is_running, self._has_cut
        try:
            return self._adopt(content)
        except ConfigError:
            raise
        except Exception as error:  # any error from a damaged state rejects it
            self.state, self.lasting, self._is_running, self._has_cut = before
            raise ConfigError(
                f"restore() of {self.env_id} got a damaged snapshot ({error_text(error)}): take a new one."
            ) from error

    def _adopt(self, content: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Restore the content of a snapshot, innermost first."""
        self._require_whole(content)
        observation, info = self._adopt_inside(content["inner"])
        self.state, self.lasting = content["state"], content["lasting"]
        self._is_running, self._has_cut = content["is_running"], content["has_cut"]
        if self._has_cut:
            _mark_cut(info)
        self.on_restore()
        return self.transform_observation(observation, info), info

    def _adopt_inside(self, content: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        if isinstance(self.env, TextWrapper):
            return self.env._adopt(content)
        return cast("tuple[Any, dict[str, Any]]", self._inner("restore")(written(content)))

    def _require_whole(self, content: Mapping[str, Any]) -> None:
        """Raise unless the content is complete and matches the wrappers."""
        found, own = wrappers_in(content), [layer._checked for layer in layers_of(self) if not layer.is_transparent]
        if found != own:
            raise ConfigError(
                f"this snapshot of {content.get('env_id')} was taken under the wrappers {told(found)}, not under "
                f"{told(own)}: wrap the environment as it was wrapped then."
            )
        parts: dict[str, dict[str, Any]] = {"state": self.initial_state(), "lasting": self.lasting}
        is_whole = has_shape(content, {**parts, "is_running": False, "has_cut": False, "inner": {}})
        if not is_whole or not all(has_shape(content[key], part) for key, part in parts.items()):
            raise ConfigError(f"restore() of {self.env_id} got a damaged snapshot: take a new one.")

    @cached_property
    def _checked(self) -> dict[str, JSONValue]:
        """Properties that a snapshot must match: the name and the relevant options."""
        return {"name": self.name, "options": plain({k: v for k, v in self.options.items() if k not in self.unchecked})}

    @property
    def has_lasting(self) -> bool:
        """True if this wrapper, or one inside it, keeps state across resets."""
        return any(layer.lasting for layer in layers_of(self))

    @property
    def wrappers(self) -> list[dict[str, JSONValue]]:
        """Names and options of the wrappers from the innermost to this one, without transparent ones."""
        kinds = [layer for layer in layers_of(self) if not layer.is_transparent]
        return [{"name": layer.name, "options": plain(layer.options)} for layer in kinds]

    @property
    def instructions(self) -> str:
        """Rules and answer format, with the additions of this wrapper."""
        inner, own = super().instructions, self.extra_instructions()
        return f"{inner}\n{own}".strip() if own else inner

    @property
    def native_tools(self) -> ToolSet | None:
        """Tools for models with native tool calls; None if this wrapper changes actions."""
        found = super().native_tools
        if found is None or type(self).transform_action is not TextWrapper.transform_action:
            return None
        return found._replace(instructions=f"{found.instructions}\n{self.extra_instructions()}".strip())

    def expert_action(self) -> str:
        """Return a solver's next action, in the form expected by this wrapper."""
        return self.completion(super().expert_action())

    # Tools for subclasses.

    def require(self, option: str, value: Any, low: float, high: float, *, whole: bool = False) -> None:
        """Raise unless ``value`` is a number with ``low <= value <= high``."""
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            noun = "a whole number" if whole else "a number"
            raise ConfigError(f"{option} of the wrapper {self.name} must be {noun} in [{low}, {high}], got {value!r}.")


def layers_of(env: gymnasium.Env[Any, Any]) -> list[TextWrapper]:
    """Return the wrappers of turngym around an environment, the innermost first."""
    found: list[TextWrapper] = []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TextWrapper):
            found.append(env)
        env = env.env
    return found[::-1]


def _mark_cut(info: dict[str, Any]) -> None:
    """Mark the episode as truncated in the info of a running environment."""
    info["success"], info["legal_actions"] = 0, ()
