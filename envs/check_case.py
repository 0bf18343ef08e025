"""How the checks play: copies of an environment, reproducible actions, and what was seen as comparable text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from turngym.seeding import stream

Env = gymnasium.Env[Any, Any]

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


class Skipped(Exception):
    """A promise that does not apply to this environment; the message says why."""


class Case:
    """One environment under check.

    Args:
        maker: Makes a copy; keyword arguments override its options.
        seed: First seed.
        episodes: Episodes per check.
    """

    def __init__(self, maker: Callable[..., Env], seed: int, episodes: int) -> None:
        self._maker = maker
        self._opened: list[Env] = []
        self.seeds = range(seed, seed + episodes)

    def make(self, **options: Any) -> Env:
        """Return a fresh copy, closed after the current check."""
        env = self._maker(**options)
        self._opened.append(env)
        return env

    def close(self) -> None:
        """Close the copies."""
        while self._opened:
            self._opened.pop().close()


def garbage(generator: np.random.Generator) -> str:
    """Return a text that no environment expects."""
    if generator.random() < 0.2:
        return GARBAGE[int(generator.integers(len(GARBAGE)))]
    points = generator.integers(1, 0x110000, size=int(generator.integers(1, 30)))
    return "".join(map(chr, points))


def next_action(info: Mapping[str, Any], generator: np.random.Generator) -> str:
    """Return a legal action most of the time, where there is a list of them."""
    legal = info.get("legal_actions", ())
    if len(legal) and generator.random() < 0.85:
        return str(legal[int(generator.integers(len(legal)))])
    return garbage(generator)


class Player:
    """Plays one episode after another on one environment with reproducible actions.

    Args:
        env: The environment.
        seed: Seed of the first reset and of the actions.
    """

    def __init__(self, env: Env, seed: int) -> None:
        self.env = env
        self._actions = stream("check", seed)
        self.begin(seed)

    def begin(self, seed: int | None = None) -> None:
        """Reset and start a new text."""
        observation, self.info = self.env.reset(seed=seed)
        self.seen = [canonical([observation, self.info])]
        self.is_over = False

    def step(self) -> None:
        """Take one turn."""
        observation, reward, terminated, truncated, self.info = self.env.step(next_action(self.info, self._actions))
        self.seen.append(canonical([observation, reward, terminated, truncated, self.info]))
        self.is_over = bool(terminated or truncated)

    def finish(self) -> list[str]:
        """Play the episode to its end and return all that was seen of it."""
        while not self.is_over:
            self.step()
        return self.seen

    def fork(self, env: Env) -> Player:
        """Return a player that goes on with the same actions on another environment, and sees nothing yet."""
        other = Player.__new__(Player)
        other.env, other.info, other.is_over, other.seen = env, self.info, self.is_over, []
        other._actions = stream("check")
        other._actions.bit_generator.state = self._actions.bit_generator.state
        return other


def canonical(value: Any) -> str:
    """Return a value as text that is equal exactly where the value is, nan included.

    >>> canonical({"b": (1, float("nan")), "a": "x"})
    "{'a': 'x', 'b': (1, nan)}"
    """
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(canonical, value)) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(canonical, value)) + "]"
    return repr(value)


def first_difference(ours: list[str], theirs: list[str]) -> str | None:
    """Say where two texts begin to differ, None if they do not.

    >>> first_difference(["a", "b"], ["a", "c"])
    "at turn 1: 'b' against 'c'"
    """
    for turn, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
            start = max(0, at - 30)
            return f"at turn {turn}: {one[start : at + 30]!r} against {other[start : at + 30]!r}"
    if len(ours) != len(theirs):
        return f"one has {len(ours)} turns, the other {len(theirs)}"
    return None
