"""Tools of the rules: copies of an environment, reproducible actions, and results as comparable text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

import gymnasium
import numpy as np

from turngym.envs.core import TextEnv
from turngym.envs.tools.tool_schema import ToolSet, write_call
from turngym.errors import ConfigError
from turngym.seeding import stream

Env: TypeAlias = gymnasium.Env[Any, Any]
Maker: TypeAlias = Callable[..., Env]

_CALLS = 20
_ODD: Mapping[str, Sequence[Any]] = {
    "string": ("", " ", "\x00", "🙂", "٣", "-1", "None", "../..", "a" * 10_000),
    "integer": (0, 1, -1, 2**31, -(10**17)),
    "number": (0, 0.5, -1.0, 1e300, -(10**17)),
    "boolean": (True, False),
    "array": ([], [0]),
    "object": ({}, {"": ""}),
    "null": (None,),
}
"""Type of an argument -> values that are seldom thought of."""
_WRONG: Sequence[Any] = (None, [], {"": 0})
GARBAGE = (
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202e\u0301",
    "\n" * 50,
    "🙂" * 1000,
    "go " * 5000,
    "{}[]()%s%d{0}\\",
    "<action></action>",
    "-1",
    "1e999",
    "٣",
    "None",
)
"""Texts that break careless parsers."""

LONGEST_EPISODE = 1000
"""Turns after which the check stops playing an episode."""

_SMALL_ARRAY = 64
_PLAIN = (str, float, int, bool, type(None))


@dataclass(frozen=True, slots=True)
class Turn:
    """Result of one call of ``reset`` or ``step``.

    Args:
        action: The action text; None for the reset.
        is_listed: Whether the action was taken from the legal actions.
        observation: As returned.
        reward: As returned, 0.0 for the reset.
        terminated: As returned.
        truncated: As returned.
        info: As returned, copied.
        returned: Observation and info, the objects themselves.
        text: All of it as comparable text, taken at once; that of a reset names the task too.
        shown: Observation and info as comparable text.
    """

    action: str | None
    is_listed: bool
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    returned: tuple[Any, Any]
    text: str
    shown: str


@dataclass(slots=True)
class Episode:
    """One episode from its reset on.

    Args:
        seed: Seed of the reset.
        turns: The reset, then the turns.
        instance: Canonical text of the task.
        is_over: Whether it has ended; False where it was left after ``LONGEST_EPISODE`` turns.
    """

    seed: int | None
    turns: list[Turn] = field(default_factory=list)
    instance: str = ""
    is_over: bool = False

    @property
    def actions(self) -> list[str]:
        """The action texts."""
        return [turn.action for turn in self.turns if turn.action is not None]

    @property
    def texts(self) -> list[str]:
        """Observations: a text for the reset and one per turn."""
        return [turn.text for turn in self.turns]


class Case:
    """One environment under check, with what the rules share.

    Args:
        maker: Makes a copy; keyword arguments override its options.
        seed: First seed.
        episodes: Episodes that most rules play.
        in_process: Whether to use no other processes; the rules that need them are then skipped.
        players: Episodes of each player, for the rules that compare players.
    """

    def __init__(
        self, maker: Maker, seed: int = 0, episodes: int = 3, *, in_process: bool = False, players: int = 0
    ) -> None:
        self.maker, self.players = maker, players
        self.seeds = range(seed, seed + episodes)
        self.in_process = in_process
        self._opened: list[Env] = []
        self._kept: dict[str, Env] = {}
        self.facts: dict[str, Any] = {}
        """Results of one rule that others use."""

    def make(self, **options: Any) -> Env:
        """Return a fresh copy, closed after the current rule."""
        env = self.maker(**options)
        self._opened.append(env)
        return env

    def kept(self, name: str = "first") -> Env:
        """Return the copy of that name, which stays open for later rules: some environments are slow to create."""
        if name not in self._kept:
            self._kept[name] = self.maker()
        return self._kept[name]

    def close(self, *, kept: bool = False) -> None:
        """Close the copies of the current rule, optionally the kept ones too."""
        copies, self._opened = self._opened, []
        if kept:
            copies += self._kept.values()
            self._kept = {}
        for env in copies:
            with suppress(Exception):
                env.close()

    @property
    def env(self) -> Env:
        """The copy that most rules play on."""
        return self.kept()

    @cached_property
    def recorded(self) -> list[Episode]:
        """One episode for each seed, mostly of legal actions; the first is the first of its copy."""
        return [record(self.env, seed) for seed in self.seeds]

    @property
    def first(self) -> Episode:
        """The first of the recorded episodes, played by a fresh copy."""
        return self.recorded[0]


def inner(env: Env) -> TextEnv[Any]:
    """Return the environment under all wrappers."""
    return cast("TextEnv[Any]", env.unwrapped)


def is_wrapped(env: Env) -> bool:
    """Return whether the environment is wrapped."""
    return env is not env.unwrapped


def turn_limit(env: Env) -> int:
    """Return how many turns to play at most."""
    return min(int(env.get_wrapper_attr("max_turns")), LONGEST_EPISODE)


def begin(env: Env, seed: int | None = None) -> Episode:
    """Reset and return the new episode."""
    observation, info = env.reset(seed=seed)
    shown, instance = canonical([observation, info]), inner(env).instance
    text = f"{shown}, task {instance!r}"  # different tasks may look the same for a while
    first = Turn(None, False, observation, 0.0, False, False, _kept(info), (observation, info), text, shown)
    return Episode(seed, [first], instance)


def step(env: Env, episode: Episode, action: str, *, is_listed: bool = False) -> None:
    """Take one turn and add it to the episode."""
    observation, reward, terminated, truncated, info = env.step(action)
    shown = canonical([observation, info])
    text = f"{shown}, {canonical([reward, terminated, truncated])}"
    judged = action, is_listed, observation, reward, terminated, truncated, _kept(info)
    episode.turns.append(Turn(*judged, (observation, info), text, shown))
    episode.is_over = bool(terminated or truncated)


def _kept(info: Any) -> Any:
    return dict(info) if isinstance(info, dict) else info


def record(env: Env, seed: int | None, *, key: int = 0) -> Episode:
    """Play an episode with reproducible actions, legal ones most of the time.

    Args:
        env: The environment.
        seed: Seed of the reset.
        key: Seed of the actions, in addition to that of the reset.
    """
    actions = stream("check", -1 if seed is None else seed, key)
    episode = begin(env, seed)
    while not episode.is_over and len(episode.turns) <= turn_limit(env):
        action, is_listed = next_action(env, episode.turns[-1].info, actions)
        step(env, episode, action, is_listed=is_listed)
    return episode


def replay(env: Env, seed: int | None, actions: Sequence[str]) -> list[str]:
    """Reset, take these actions as long as the episode runs, and return what was seen."""
    return follow(env, begin(env, seed), actions)


def follow(env: Env, episode: Episode, actions: Sequence[str]) -> list[str]:
    """Continue an episode, and return everything that was seen."""
    for action in actions:
        if episode.is_over:
            break
        step(env, episode, action)
    return episode.texts


def next_action(env: Env, info: Any, generator: np.random.Generator) -> tuple[str, bool]:
    """Return an action text, and whether it was listed as legal; the expert's if there is no list."""
    legal = info.get("legal_actions", ()) if isinstance(info, Mapping) else ()
    is_odd = generator.random() < 0.15
    if is_odd or not isinstance(legal, tuple | list):
        return garbage(generator), False
    if legal:
        return str(legal[int(generator.integers(len(legal)))]), True
    return (expert_action(env) if generator.random() < 0.6 else None) or garbage(generator), False


def expert_action(env: Env) -> str | None:
    """Return the expert's action, None if there is no expert; the generator stays where it is."""
    generator = env.unwrapped.np_random.bit_generator
    before = generator.state
    try:
        return str(env.get_wrapper_attr("expert_action")())
    except ConfigError:
        return None
    finally:
        generator.state = before


def garbage(generator: np.random.Generator) -> str:
    """Return a text that no environment expects."""
    if generator.random() < 0.2:
        return GARBAGE[int(generator.integers(len(GARBAGE)))]
    points = generator.integers(1, 0x110000, size=int(generator.integers(1, 30)))
    return "".join(map(chr, points))


def odd_calls(tools: ToolSet | None, generator: np.random.Generator) -> list[str]:
    """Return calls of declared tools: with odd values of the right types, with wrong types, and without arguments."""
    found = []
    for tool in tools.tools if tools else ():
        properties = tool["parameters"].get("properties", {})
        fitting = [{key: _value(each, generator) for key, each in properties.items()} for _ in range(_CALLS)]
        wrong = [{**fitting[0], key: value} for key in properties for value in _WRONG]
        found += [write_call(tool["name"], each) for each in (*fitting, *wrong, {}, {"nothing": 1}, "text")]
    return found


def _value(schema: Mapping[str, Any], generator: np.random.Generator) -> Any:
    """Return an odd value that fits a schema."""
    if "anyOf" in schema:
        return _value(schema["anyOf"][int(generator.integers(len(schema["anyOf"])))], generator)
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    values: Sequence[Any] = schema.get("enum") or _ODD.get(kind, (None,))
    value = values[int(generator.integers(len(values)))]
    if kind == "array" and value:
        return [_value(schema.get("items", {}), generator) for _ in range(2)]
    return value


def canonical(value: Any) -> str:
    """Return a value as text that is equal exactly where the value is, nan included.

    >>> canonical({"b": (1, float("nan")), "a": "x"})
    "{'a': 'x', 'b': (1, nan)}"
    """
    kind = type(value)
    if kind in _PLAIN or (kind is tuple and all(type(part) is str for part in value)):
        return repr(value)
    if isinstance(value, np.ndarray):
        if value.size > _SMALL_ARRAY and value.dtype != object:
            content: Any = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        else:
            content = value.tolist()
        return f"{value.dtype}{value.shape}{content}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {canonical(value[key])}" for key in sorted(value, key=repr)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(canonical, value)) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(canonical, value)) + "]"
    return repr(value)
