"""The contract of a single-agent environment: a Gymnasium environment whose actions are text.

A subclass states the rules in a handful of small methods; this base class keeps the promises that hold everywhere:
call order, turn limit, the info table, splits, snapshots.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import gymnasium
import numpy as np

from turngym.envs.settings import Configured
from turngym.envs.spaces import Unicode
from turngym.errors import BrokenCode, ConfigError, EpisodeOver, error_text, nearest
from turngym.types import INFO_TYPES, SPLITS, JSONValue, Split

ObsT = TypeVar("ObsT")
InstanceT = TypeVar("InstanceT")

_MAX_DRAWS = 10_000
_SNAPSHOT_FORMAT = 1
LONGEST_ACTION = 100_000
"""Characters of an action that any environment or game reads."""
_LONGEST_TOLD = 300


class Outcome(NamedTuple, Generic[ObsT]):
    """What one action led to.

    Args:
        observation: What the agent sees next; only what is new.
        reward: The reward of this turn.
        terminated: Whether the rules ended the episode here.
        success: Whether the task is solved; only read when ``terminated``.
        action_is_valid: Whether the action text was understood and legal.
    """

    observation: ObsT
    reward: float = 0.0
    terminated: bool = False
    success: bool = False
    action_is_valid: bool = True


def too_long(action: str, longest: int) -> str:
    """Return the answer to an action of too many characters.

    >>> too_long("x" * 1_000_000, LONGEST_ACTION)
    'The action has 1,000,000 characters, and at most 100,000 are read: write a shorter one.'
    """
    return f"The action has {len(action):,} characters, and at most {longest:,} are read: write a shorter one."


def instance_hash(instance: str) -> str:
    """Return the name of a task instance: a hash of its canonical text.

    >>> instance_hash("a room") == instance_hash("a room") != instance_hash("another room")
    True
    """
    return hashlib.sha256(instance.encode("utf8", "surrogatepass")).hexdigest()[:16]


def split_of(instance: str) -> Split:
    """Return the split that an instance belongs to: 80 % train, 10 % dev, 10 % test, by hash.

    >>> {split_of(str(i)) for i in range(100)} == {"train", "dev", "test"}
    True
    """
    bucket = (
        int.from_bytes(hashlib.sha256(instance.encode("utf8", "surrogatepass")).digest()[:8], "big") % 10
    )  # the number of instance_hash()
    return "train" if bucket < 8 else SPLITS[bucket - 7]


def _place_of(kind: type) -> str:
    """Return the module that a class is from; of a file that need not be installed, its name."""
    module = kind.__module__
    if module.startswith("turngym_file_"):  # of turngym.loading, which is not needed to import turngym
        return os.path.basename(getattr(sys.modules.get(module), "__file__", None) or module)
    return module


class TextEnv(Configured, gymnasium.Env[ObsT, str], ABC):
    """A turn-based environment that answers text with text.

    Subclasses implement ``_begin``, ``_advance``, ``_anchor``, ``_state`` and ``_load``, and override the other
    underscored methods where they have something to say. All randomness comes from ``self.np_random``.

    Args:
        max_turns: Turns after which an unfinished episode is truncated, at least 1.
        split: Which share of the instances to draw from: ``"train"``, ``"dev"`` or ``"test"``.
        env_id: The registered id; filled in by ``gymnasium.make``.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range.
    """

    __slots__ = (  # with more than 30 others in its dict, an instance would not share keys: slow in large vectors
        "_action_is_valid",
        "_observation",
        "_running",
        "_success",
        "action_space",
        "env_id",
        "instance",
        "max_turns",
        "observation_space",
        "render_mode",
        "settings",
        "split",
        "turn",
    )
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  (gymnasium declares it so)
    instructions: str = ""
    """Rules and answer format, once, for the system prompt."""
    finite_instances: int | None = None
    """How many instances exist, where that is too few for splits; then every split draws from all of them."""
    splits: ClassVar[tuple[str, ...]] = SPLITS
    longest_action: ClassVar[int] = LONGEST_ACTION
    """Characters of an action that are read; a longer one is an invalid action, and the rules never see it."""

    @classmethod
    def refusal(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why a file may not ask for this environment with these options; empty if it may."""
        split = options.get("split", cls.splits[0])
        if split not in cls.splits:
            return f"it has no split {str(split)[:60]!r}"
        return super().refusal({key: value for key, value in options.items() if key != "split"}, defaults)

    def __init__(
        self, *, max_turns: int, split: str = "train", env_id: str = "", render_mode: str | None = None
    ) -> None:
        self.env_id = env_id or f"{_place_of(type(self))}:{type(self).__qualname__}"
        self._require("max_turns", max_turns, 1, 100_000)
        if not isinstance(max_turns, int):
            raise ConfigError(f"max_turns of {self.env_id} must be a whole number, got {max_turns!r}.")
        if split not in self.splits:
            raise ConfigError(f"{self.env_id} has no split {split!r}. {nearest(split, self.splits)}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ConfigError(
                f"{self.env_id} cannot render {render_mode!r}: pass one of {self.metadata['render_modes']}."
            )
        self.split = split
        self.max_turns = max_turns
        self.render_mode = render_mode
        self.observation_space = cast("gymnasium.Space[ObsT]", Unicode())
        self.action_space = Unicode()
        self.instance = ""
        self.turn = 0
        self._running = False
        self._success = -1
        self._action_is_valid = True
        self._observation: ObsT | None = None

    # The rules, given by the subclass.

    @abstractmethod
    def _begin(self, task: str | int | None) -> ObsT:
        """Set up a new instance, store its canonical text in ``self.instance``, return the first observation."""

    @abstractmethod
    def _advance(self, action: str) -> Outcome[ObsT]:
        """Apply one action text, which may be any text at all."""

    @abstractmethod
    def _anchor(self) -> str:
        """Return canonical text of what the agent can know; no hidden fact, no turn counter."""

    @abstractmethod
    def _state(self) -> JSONValue:
        """Return everything that ``_load`` needs, as a value that JSON can hold."""

    @abstractmethod
    def _load(self, state: JSONValue) -> None:
        """Bring back what ``_state`` returned."""

    def _refuse_long(self, action: str) -> Outcome[ObsT]:
        """Answer an action of more than ``longest_action`` characters: a turn in which nothing happens."""
        words = too_long(action, self.longest_action)
        last = self._observation
        return Outcome(
            cast("ObsT", {**last, "text": words} if isinstance(last, Mapping) else words), action_is_valid=False
        )

    def _legal_actions(self) -> tuple[str, ...]:
        """Return the legal actions, empty where there is no list."""
        return ()

    def _progress(self) -> float:
        """Return the share of the task that is done, nan if unknown; computed from what the agent can know."""
        return float("nan")

    def _score(self) -> float:
        """Return the benchmark's number for the episode so far."""
        return float(self._success == 1)

    def _picture(self) -> str:
        """Return the text that ``render`` shows."""
        return str(self._observation)

    def expert_action(self) -> str:
        """Return a solver's next action.

        Raises:
            ConfigError: The environment has no solver.
        """
        raise ConfigError(f"{self.env_id} has no solver, so there is no expert action.")

    def resample_hidden(self) -> bool:
        """Replace what the agent cannot know by something else that fits all it has seen.

        Returns:
            Whether anything changed; False where nothing is hidden. The checker uses this to find leaks.
        """
        return False

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the instances where there is a data set; empty for procedural environments."""
        return ()

    # The promises, kept here.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ObsT, dict[str, Any]]:
        """Begin a new episode.

        Args:
            seed: Seeds ``self.np_random``; None goes on with the generator as it is.
            options: ``{"task": name or index}`` picks an instance where there is a data set.

        Returns:
            The first observation and the info table of :class:`turngym.types.Info`.
        """
        options = options or {}
        for key in options:
            if key != "task":
                raise ConfigError(f"reset of {self.env_id} got the option {key!r}. {nearest(key, ['task'])}")
        super().reset(seed=seed)
        self._running = False  # until the new episode stands
        self.turn = 0
        self._success = -1
        self._action_is_valid = True
        self._observation = self._begin(options.get("task"))
        if self._observation is None:
            raise BrokenCode(f"_begin() of {self.env_id} returned None: it must return the first observation.")
        self._running = True
        return self._observation, self._info()

    def step(self, action: str) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Take one turn. Any text is accepted; one that is not understood is answered, never raised.

        Raises:
            EpisodeOver: The episode has ended or has not begun.
            TypeError: The action is no text.
        """
        if not self._running:
            state = "has ended" if self._success >= 0 else "has not begun"
            raise EpisodeOver(f"step() of {self.env_id} after the episode {state}: call reset() first.")
        if not isinstance(action, str):
            raise TypeError(f"an action of {self.env_id} is text, got {type(action).__name__}: pass a str.")
        outcome = self._advance(action) if len(action) <= self.longest_action else self._refuse_long(action)
        if not isinstance(outcome, Outcome):
            raise BrokenCode(f"_advance() of {self.env_id} must return an Outcome, got {type(outcome).__name__}.")
        observation, reward, terminated, success, self._action_is_valid = outcome
        self._observation = observation
        self.turn += 1
        if terminated:
            truncated = self._running = False
            self._success = int(success)
        elif self.turn >= self.max_turns:
            truncated, self._running, self._success = True, False, 0
        else:
            truncated = False
        return observation, float(reward), terminated, truncated, self._info()

    def _info(self) -> dict[str, Any]:
        return {
            "anchor": self._anchor(),
            "legal_actions": self._legal_actions() if self._running else (),
            "action_is_valid": self._action_is_valid,
            "success": self._success,
            "progress": float(self._progress()),
            "score": float(self._score()),
            "fault": "",
        }

    def render(self) -> str | None:
        """Return the current picture as text, or None without a render mode."""
        if self.render_mode != "ansi":
            return None
        return "" if self._observation is None else self._picture()

    @property
    def instance_hash(self) -> str:
        """The name of the current instance: a hash of its canonical text."""
        return instance_hash(self.instance)

    def snapshot(self) -> bytes:
        """Return the exact state, generator included, as JSON.

        Raises:
            EpisodeOver: No episode has begun.
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
            "state": self._state(),
        }
        return json.dumps(content, sort_keys=True).encode()

    def restore(self, snapshot: bytes) -> tuple[ObsT, dict[str, Any]]:
        """Bring back a state that ``snapshot`` saved, in this or another process.

        Returns:
            The observation and info as they were.

        Raises:
            ConfigError: The bytes are no snapshot, a damaged one, or one of another environment or other options. The
                episode stands as it did before then.
        """
        from turngym.envs.saved import require_same_content  # not needed to import turngym

        content = self._read_snapshot(snapshot)
        before = None if self._observation is None else json.loads(self.snapshot())
        generator = self.np_random
        fresh = generator.bit_generator.state
        try:
            found = self._adopt(content)
            restored = json.loads(self.snapshot())
            require_same_content({**restored, "state": None}, {**content, "state": None})  # states may be put in order
            return found
        except Exception as error:  # the boundary: whatever a damaged state leads to, it is refused
            self._np_random = generator
            self._go_back(before, fresh)
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(
                f"restore() of {self.env_id} got a damaged snapshot ({error_text(error)}): take a new one."
            ) from error

    def _go_back(self, before: dict[str, Any] | None, fresh: Mapping[str, Any]) -> None:
        """Stand again as before a snapshot that was refused; without an episode if there was none."""
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
        self._load(content["state"])
        info = self._info()
        wrong = [key for key, kind in INFO_TYPES.items() if not isinstance(info[key], kind)]
        if wrong or not isinstance(self._observation, str | dict):
            raise TypeError(f"wrong types in {wrong or 'the observation'}")
        return cast("ObsT", self._observation), info

    def _read_snapshot(self, snapshot: bytes) -> dict[str, Any]:
        """Return what a snapshot of this environment and these options holds."""
        try:
            content = json.loads(snapshot)
            found = content["format"], content["env_id"], content["settings"]
            told = f"{found[1]} with {found[2]}"[:_LONGEST_TOLD]
            expected = _SNAPSHOT_FORMAT, self.env_id, json.loads(json.dumps(self.settings))
            is_ours = found == expected
        except Exception as error:  # the boundary: the bytes may be anything
            raise ConfigError(f"restore() of {self.env_id} got bytes that are no snapshot of turngym.") from error
        if not is_ours:
            raise ConfigError(f"this snapshot belongs to {told}, not to {expected[1]} with {expected[2]}.")
        return cast("dict[str, Any]", content)

    # Tools for subclasses.

    def _draw(
        self, generate: Callable[[np.random.Generator], InstanceT], text: Callable[[InstanceT], str]
    ) -> InstanceT:
        """Draw instances until one belongs to ``self.split``; store its canonical text."""
        for _ in range(_MAX_DRAWS):
            instance = generate(self.np_random)
            self.instance = text(instance)
            if self.finite_instances is not None or split_of(self.instance) == self.split:
                return instance
        raise ConfigError(f"{self.env_id} found no instance of split {self.split!r}: its options leave too few.")

    def _require(self, option: str, value: float, low: float, high: float) -> None:
        """Raise unless ``low <= value <= high``."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(f"{option} of {self.env_id} must lie in [{low}, {high}], got {value!r}.")
