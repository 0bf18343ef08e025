"""Base class of single-agent environments: a Gymnasium environment whose actions are text.

A subclass implements the rules in a few small methods; the base class handles call order, turn limit, info, splits and
snapshots.
"""

from __future__ import annotations

import math
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, cast

import gymnasium
import numpy as np

from turngym.columns import valid_columns
from turngym.display import html_text
from turngym.envs.instances import canonical_text, instance_hash, split_of
from turngym.envs.snapshots import SnapshotEnv
from turngym.envs.spaces import Unicode
from turngym.errors import BrokenCode, ConfigError, EpisodeOver, SnapshotUnsupported, nearest
from turngym.options import Options as BaseOptions
from turngym.options import between
from turngym.types import SPLITS, UNKNOWN, JSONValue

if TYPE_CHECKING:
    from turngym.envs.tools.tool_schema import ToolSet

ObsT = TypeVar("ObsT")
MaxTurns: TypeAlias = Annotated[int, between(1, 100_000)]
Reward: TypeAlias = Annotated[float, between(-1e6, 1e6)]
InstanceT = TypeVar("InstanceT")

_MAX_DRAWS = 10_000
LONGEST_ACTION = 100_000
"""Maximum length of an action, in characters."""
UNBOUNDED = float("-inf"), float("inf")
"""Score range of an environment whose scores have no known bounds."""


class Outcome(NamedTuple, Generic[ObsT]):
    """The result of one action.

    Args:
        observation: Next observation; only what is new.
        reward: The reward of this turn.
        terminated: True if the rules ended the episode.
        success: True if the task is solved; only used when ``terminated``.
        action_is_valid: True if the action was parsed and legal.
        truncated: True if a limit other than ``max_turns`` ended the episode; ignored when ``terminated``.
    """

    observation: ObsT
    reward: float = 0.0
    terminated: bool = False
    success: bool = False
    action_is_valid: bool = True
    truncated: bool = False


def too_long(action: str, longest: int) -> str:
    """Return the observation after an action that is too long.

    >>> too_long("x" * 1_000_000, LONGEST_ACTION)
    'The action has 1,000,000 characters, and at most 100,000 are read: write a shorter one.'
    """
    return f"The action has {len(action):,} characters, and at most {longest:,} are read: write a shorter one."


def _as_tuple(actions: Sequence[str], env_id: str) -> tuple[str, ...]:
    if type(actions) is tuple:
        return actions
    if isinstance(actions, str) or not isinstance(actions, Sequence):
        kind = type(actions).__name__
        raise BrokenCode(f"legal_actions() of {env_id} must return a list or tuple of texts, got {kind}.")
    return tuple(actions)


def _place_of(kind: type) -> str:
    """Return the module of a class: the package that exports it, or the name of the user's file."""
    module = kind.__module__
    package, _, last = module.rpartition(".")
    if module.startswith("turngym.") and last in ("env", "game"):
        is_exported = getattr(sys.modules.get(package), kind.__name__, None) is kind
        return package if is_exported else module
    if module.startswith("turngym_file_"):  # of turngym.loading, which is not needed to import turngym
        return os.path.basename(getattr(sys.modules.get(module), "__file__", None) or module)
    return module


class TextEnv(SnapshotEnv[ObsT]):
    """A turn-based environment whose actions and observations are text.

    A subclass implements its rules by overriding hooks. Three are enough for a small game:

    - ``initial_state(generator)`` samples an instance; the value is kept in ``self.state`` and must be
      JSON-serialisable.
    - ``observation()`` returns what the agent sees of ``self.state``.
    - ``apply_action(action)`` takes any text, changes ``self.state`` and returns an :class:`Outcome`.

    These have defaults:

    - ``anchor()``: canonical text of what the agent can know; by default the observation.
    - ``legal_actions()``, ``progress()``, ``score()``, ``render_text()``, ``tasks()``, ``expert_action()`` and
      ``resample_hidden()``: optional.

    An environment that keeps its state in other attributes, or has named tasks, overrides ``begin(task)`` instead of
    ``initial_state``, and also ``save_state()`` and ``load_state(state)``. All randomness comes from
    ``self.np_random``, the argument of ``initial_state``. Names with a leading underscore belong to this class.

    Options are declared in a nested class ``Options(TextEnv.Options)``; ``setup()`` prepares whatever depends on
    ``self.options``. The constructor takes them by name, with ``env_id`` and ``render_mode``.

    >>> class HotCold(TextEnv[str]):
    ...     instructions = "Guess a number from 0 to 999."
    ...     def initial_state(self, generator):
    ...         return int(generator.integers(1000))
    ...     def observation(self):
    ...         return "Guess the number."
    ...     def apply_action(self, action):
    ...         found = action == str(self.state)
    ...         return Outcome("Yes!" if found else "No.", float(found), terminated=found, success=found)
    >>> env = HotCold()
    >>> env.reset(seed=1)[0], env.step("12")[0]
    ('Guess the number.', 'No.')
    """

    class Options(BaseOptions):
        """Options of every environment."""

        max_turns: MaxTurns = 20
        """Turns after which an unfinished episode is truncated."""
        split: str = "train"
        """Share of the instances to sample from: ``"train"``, ``"dev"`` or ``"test"``."""

        @property
        def turn_limit(self) -> int:
            """Turns after which an episode is truncated, for classes whose ``max_turns`` may be None."""
            return self.max_turns

    options: Options
    __slots__ = ("action_space", "observation_space", "options", "render_mode", "split")
    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  (gymnasium declares it so)
    state: JSONValue = None
    """State of the episode, unless the environment overrides ``save_state`` and ``load_state``."""
    instructions: str = ""
    """Rules and answer format, for the system prompt."""
    finds_action: bool = False
    """True if ``apply_action`` finds the action in a whole completion, reasoning included, by a notation of the rules
    such as ``<search>...</search>``."""
    native_tools: ToolSet | None = None
    """Tools for models with native tool calls, and the rules for these models; None if actions are text only."""
    beaten_by: ClassVar[Mapping[str, str]] = {}
    """Player without skill -> reason why it beats random legal play; shown on the environment's page."""
    finite_instances: int | None = None
    """Number of instances, if too few for splits; every split then samples from all of them."""
    splits: ClassVar[tuple[str, ...]] = SPLITS
    longest_action: ClassVar[int] = LONGEST_ACTION
    """Maximum length of an action; a longer one is invalid, and the rules never see it."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """Minimum and maximum of ``score()``; a submission with a score outside this range is rejected."""

    @classmethod
    def refusal(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return the reason why untrusted files may not request these options; empty if they may."""
        split = options.get("split", cls.splits[0])
        if split not in cls.splits:
            return f"it has no split {str(split)[:60]!r}"
        return super().refusal({key: value for key, value in options.items() if key != "split"}, defaults)

    @classmethod
    def misfit(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return the reason why these options are invalid; empty if they are valid."""
        split = options.get("split", cls.splits[0])
        if split not in cls.splits:
            return f"it has no split {str(split)[:60]!r}"
        return super().misfit(options, defaults)

    def __init__(self, *positional: Any, env_id: str = "", render_mode: str | None = None, **options: Any) -> None:
        self.env_id = env_id or f"{_place_of(type(self))}:{type(self).__qualname__}"
        self.take_options(self.env_id, options, positional)
        if self.options.split not in self.splits:
            raise ConfigError(
                f"{self.env_id} has no split {self.options.split!r}. {nearest(self.options.split, self.splits)}"
            )
        self._require_render_mode(render_mode)
        self.split = self.options.split
        self.max_turns = self._turn_limit()
        self.render_mode = render_mode
        self.observation_space = cast("gymnasium.Space[ObsT]", Unicode())
        self.action_space = Unicode()
        self.instance = ""
        self.turn = 0
        self._running = False
        self._success = -1
        self._action_is_valid = True
        self._observation: ObsT | None = None
        self.setup()
        self.after_setup()

    _constructor = __init__

    def _turn_limit(self) -> int:
        limit = self.options.turn_limit
        if not isinstance(limit, int):
            raise ConfigError(f"the options of {self.env_id} need a property turn_limit where max_turns is {limit!r}.")
        return limit

    def _require_render_mode(self, render_mode: str | None) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ConfigError(f"{self.env_id} cannot render {render_mode!r}: pass one of {modes}.")

    def after_setup(self) -> None:
        """Called after ``setup()``; for base classes."""

    # The hooks, overridden by subclasses.

    def initial_state(self, generator: np.random.Generator) -> JSONValue:
        """Return the state of a new instance; called again until one belongs to ``self.split``."""
        raise BrokenCode(f"{type(self).__qualname__} has neither initial_state() nor begin(): define one of them.")

    def observation(self) -> ObsT:
        """Return what the agent sees in ``self.state``; by default its last observation."""
        return cast("ObsT", self._observation)

    @abstractmethod
    def apply_action(self, action: str) -> Outcome[ObsT]:
        """Apply one action, which may be any text."""

    def begin(self, task: str | int | None) -> ObsT:
        """Set up a new instance, store its canonical text in ``self.instance``, return the first observation.

        Args:
            task: Name or index of an instance; None samples one.
        """
        if task is not None:
            raise ConfigError(
                f"{self.env_id} has no named tasks, got options={{'task': {task!r}}}: pick an instance by seed."
            )
        self.state = self.draw(self.initial_state, canonical_text)
        return self.observation()

    def anchor(self) -> str:
        """Return canonical text of what the agent can know, without hidden facts and turn counter."""
        shown = self._observation
        return shown if isinstance(shown, str) else canonical_text(cast("JSONValue", shown))

    def save_state(self) -> JSONValue:
        """Return everything that ``load_state`` needs, as a JSON value."""
        if self.state is None:
            raise SnapshotUnsupported(
                f"{self.env_id} keeps nothing in self.state: override save_state() and load_state(), or keep it there."
            )
        return self.state

    def load_state(self, state: JSONValue) -> None:
        """Restore a state returned by ``save_state``."""
        self.state = state
        self.observation()  # detects a damaged state immediately

    def refuse_long_action(self, action: str) -> Outcome[ObsT]:
        """Answer an action of more than ``longest_action`` characters; the state does not change."""
        words = too_long(action, self.longest_action)
        last = self._observation
        return Outcome(
            cast("ObsT", {**last, "text": words} if isinstance(last, Mapping) else words), action_is_valid=False
        )

    def legal_actions(self) -> Sequence[str]:
        """Return the legal actions; empty if they cannot be enumerated."""
        return ()

    def progress(self) -> float:
        """Return the completed fraction of the task, nan if unknown; it must depend only on what the agent can know."""
        return float("nan")

    def score(self) -> float:
        """Return the benchmark's number for the episode so far, within ``score_range``."""
        return float(self._success == 1)

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return columns of the last turn for training methods: named numbers and strings; by default none."""
        return {}

    def render_text(self) -> str:
        """Return the text shown by ``render``."""
        return str(self._observation)

    def _repr_html_(self) -> str:
        shown = "not reset yet" if self._observation is None else self.render_text()
        return html_text(self.env_id or type(self).__name__, shown)

    def expert_action(self) -> str:
        """Return a solver's next action.

        Raises:
            ConfigError: The environment has no solver.
        """
        raise ConfigError(f"{self.env_id} has no solver, so there is no expert action: define expert_action().")

    def resample_hidden(self) -> bool:
        """Resample hidden facts, consistent with everything the agent has seen.

        Returns:
            True if anything changed; False if nothing is hidden. ``turngym check`` uses this to find leaks.
        """
        return False

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the instances if there is a data set; empty for procedural environments."""
        return ()

    # Provided by this class.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ObsT, dict[str, Any]]:
        """Start a new episode.

        Args:
            seed: Seeds ``self.np_random``; None continues with the current generator.
            options: ``{"task": name or index}`` picks an instance if there is a data set.

        Returns:
            The first observation and the info table of :class:`turngym.types.Info`.
        """
        options = options or {}
        for key in options:
            if key != "task":
                raise ConfigError(f"reset of {self.env_id} got the option {key!r}. {nearest(key, ['task'])}")
        finite = self.finite_instances
        if finite is not None and (isinstance(finite, bool) or not isinstance(finite, int | np.integer) or finite < 1):
            raise BrokenCode(
                f"finite_instances of {self.env_id} must be None or a number of at least 1, got {finite!r}."
            )
        super().reset(seed=seed)
        self._running = False  # until the new episode has started
        self.turn = 0
        self._success = -1
        self._action_is_valid = True
        self._observation = self.begin(options.get("task"))
        if self._observation is None:
            raise BrokenCode(f"begin() of {self.env_id} returned None: it must return the first observation.")
        self._running = True
        return self._observation, self._info()

    def step(self, action: str) -> tuple[ObsT, float, bool, bool, dict[str, Any]]:
        """Take one turn. Any text is accepted; an invalid action is answered by an observation and never raises.

        Raises:
            EpisodeOver: The episode has ended or has not started.
            TypeError: The action is not a ``str``.
        """
        if not self._running:
            when = "after the episode has ended" if self._success >= 0 else "before an episode has started"
            raise EpisodeOver(f"step() of {self.env_id} {when}: call reset() first.")
        if not isinstance(action, str):
            raise TypeError(f"an action of {self.env_id} must be a string, got {type(action).__name__}: pass a str.")
        outcome = self.apply_action(action) if len(action) <= self.longest_action else self.refuse_long_action(action)
        if not isinstance(outcome, Outcome):
            raise BrokenCode(f"apply_action() of {self.env_id} must return an Outcome, got {type(outcome).__name__}.")
        observation, reward, terminated, success, self._action_is_valid, is_cut = outcome
        self._observation = observation
        self.turn += 1
        if terminated:
            truncated = self._running = False
            self._success = int(success)
        elif is_cut or self.turn >= self.max_turns:
            truncated, self._running, self._success = True, False, 0
        else:
            truncated = False
        return observation, float(reward), terminated, truncated, self._info()

    def _info(self) -> dict[str, Any]:
        rules = type(self)  # an instance attribute may shadow a hook, such as self.score
        progress = float(rules.progress(self))
        info: dict[str, Any] = {
            "anchor": rules.anchor(self),
            "legal_actions": _as_tuple(rules.legal_actions(self), self.env_id) if self._running else (),
            "action_is_valid": self._action_is_valid,
            "success": self._success,
            "progress": UNKNOWN if math.isnan(progress) else progress,
            "score": float(rules.score(self)),
            "fault": "",
        }
        if columns := self.turn_columns():
            info["columns"] = valid_columns(columns)
        return info

    def render(self) -> str | None:
        """Render the current state as text; None without a render mode."""
        if self.render_mode != "ansi":
            return None
        return "" if self._observation is None else self.render_text()

    @property
    def instance_hash(self) -> str:
        """The name of the current instance: a hash of its canonical text."""
        return instance_hash(self.instance)

    # Tools for subclasses.

    def draw(self, generate: Callable[[np.random.Generator], InstanceT], text: Callable[[InstanceT], str]) -> InstanceT:
        """Sample instances until one belongs to ``self.split``; store its canonical text."""
        for _ in range(_MAX_DRAWS):
            instance = generate(self.np_random)
            self.instance = text(instance)
            if self.finite_instances is not None or split_of(self.instance) == self.split:
                return instance
        raise ConfigError(f"{self.env_id} found no instance of split {self.split!r}: its options leave too few.")

    def require(self, option: str, value: float, low: float, high: float) -> None:
        """Raise unless ``low <= value <= high``."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(f"{option} of {self.env_id} must be in [{low}, {high}], got {value!r}.")
