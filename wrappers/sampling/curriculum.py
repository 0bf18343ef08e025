"""Curriculum over levels of an environment, by the success rate."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.plugins import is_registered
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import Reset, ResetResult, StepResult, TextWrapper, layers_of


def next_level(
    level: int, results: Sequence[int], num_levels: int, *, window: int, raise_at: float, lower_at: float | None
) -> int:
    """Return the next level.

    Args:
        level: The level of the results.
        results: 1 for each solved episode and 0 for each other one, the latest last.
        num_levels: Number of levels.
        window: Number of latest episodes that count; with fewer, the level does not change.
        raise_at: Minimum success rate for the next level.
        lower_at: Maximum success rate for the previous level; None to never go back.

    >>> next_level(0, [1, 1, 0, 1], 3, window=4, raise_at=0.75, lower_at=0.2)
    1
    """
    if len(results) < window:
        return level
    rate = sum(results[-window:]) / window
    if rate >= raise_at:
        return min(level + 1, num_levels - 1)
    return max(level - 1, 0) if lower_at is not None and rate <= lower_at else level


@WRAPPERS.register("curriculum")
class Curriculum(TextWrapper):
    """Plays the levels of an environment, from easy to hard.

    The level changes with a reset and never within an episode. ``reset(options={"level": 2})`` plays a given level; a
    trainer that compares episodes in groups must choose it, because the slots of a vector advance independently.
    Episodes of another level than the current one are not counted. Limits such as ``turn_limit`` belong inside: an
    episode truncated by an outer wrapper does not end here and is not counted.

    Args:
        env: The environment. With levels, it must come from ``gymnasium.make``; its wrappers apply to every level.
        levels: A registered id per level, or a dict of options, in which ``"id"`` may name another id. Without levels,
            the environment is the only one.
        window: Number of latest episodes of a level that count, at least 1.
        raise_at: Minimum success rate for the next level, in (0, 1].
        lower_at: Maximum success rate for the previous level, less than ``raise_at``; None to never go back.
        start: The first level.

    Raises:
        ConfigError: An option is out of range, or the levels differ in their spaces.

    >>> import gymnasium, turngym
    >>> env = Curriculum(gymnasium.make("turngym/TowerOfHanoi-v0"), levels=[{"discs": 2}, {"discs": 3}], window=1)
    >>> for _ in range(3):
    ...     _ = env.reset(seed=0), env.step(env.expert_action())
    ...     _ = env.step(env.expert_action()), env.step(env.expert_action())
    >>> env.level, env.level_reached
    (1, 1)
    """

    file_options = worded()

    name: ClassVar[str] = "curriculum"

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        levels: Sequence[str | Mapping[str, Any]] = (),
        window: int = 20,
        raise_at: float = 0.8,
        lower_at: float | None = None,
        start: int = 0,
    ) -> None:
        super().__init__(env)
        if any(isinstance(layer, Curriculum) for layer in layers_of(env)):
            raise ConfigError("there is a curriculum around this environment already: put all levels into one.")
        self.require("window", window, 1, 1_000_000, whole=True)
        self.require("raise_at", raise_at, 1e-9, 1)
        if lower_at is not None:
            self.require("lower_at", lower_at, 0, 1)
            if lower_at >= raise_at:
                raise ConfigError(f"lower_at of curriculum must be less than raise_at={raise_at}, got {lower_at}.")
        self.require("start", start, 0, max(0, len(levels) - 1), whole=True)
        self.window, self.raise_at, self.lower_at = window, raise_at, lower_at
        self._origin = super().origin
        self._given_spec = self.spec  # Gymnasium keeps the first one it is asked for, so not that of a level
        self._bottom = _innermost(self)
        self._template = self._bottom.env
        self._levels = [_level_env(self._template, level) for level in levels] or [self._template]
        self.lasting = {"level": start, "results": []}
        self._pick(start)

    def initial_state(self) -> dict[str, Any]:
        return {"level": 0}

    @property
    def origin(self) -> tuple[str, Mapping[str, Any]]:
        """Id and options of the given environment."""
        return self._origin

    @property
    def level(self) -> int:
        """The level of the running episode."""
        return self._levels.index(self._bottom.env)

    @property
    def level_reached(self) -> int:
        """The level that the next reset plays by default."""
        return int(self.lasting["level"])

    @property
    def num_levels(self) -> int:
        """Number of levels."""
        return len(self._levels)

    def _level_of(self, options: Mapping[str, Any]) -> int:
        level = options.get("level", self.level_reached)
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < self.num_levels:
            raise ConfigError(f'options["level"] must be a whole number in [0, {self.num_levels - 1}], got {level!r}.')
        return level

    def _pick(self, level: int) -> None:
        """Set the current level; the random generator continues."""
        env = self._levels[level]
        if env is not self._bottom.env:
            env.unwrapped.np_random = copy.deepcopy(self._bottom.env.unwrapped.np_random)
            self._bottom.env = env

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; a rejected reset leaves the previous episode running."""
        before, is_begun = self._bottom.env, False
        try:
            begun = super().reset(seed=seed, options=options)
            is_begun = True
        finally:
            if not is_begun:
                self._bottom.env = before
        return begun

    def transform_reset(self, seed: int | None, options: dict[str, Any] | None) -> Reset:
        self._pick(self._level_of(options or {}))
        return seed, {key: value for key, value in (options or {}).items() if key != "level"}

    def on_reset(self, result: ResetResult) -> None:
        self.state["level"] = self.level

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        if step.is_over and self.state["level"] == self.level_reached:
            results = [*self.lasting["results"], int(step.info["success"] == 1)][-self.window :]
            level = next_level(
                self.level_reached,
                results,
                self.num_levels,
                window=self.window,
                raise_at=self.raise_at,
                lower_at=self.lower_at,
            )
            self.lasting = {"level": level, "results": results if level == self.level_reached else []}
        return step.reward, False

    def _adopt(self, content: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._require_whole(content)
        before = self._bottom.env
        self._pick(self._level_of(content["state"]))
        try:
            if self._bottom.env is not before:
                self._bottom.env.reset()  # Gymnasium's wrappers around a level need a reset first
            return super()._adopt(content)
        except ConfigError:
            self._bottom.env = before
            raise

    def close(self) -> None:
        """Close every level."""
        for env in {*self._levels, self._template} - {self._bottom.env}:
            env.close()
        super().close()


def _innermost(env: gymnasium.Wrapper[Any, str, Any, str]) -> gymnasium.Wrapper[Any, str, Any, str]:
    """Return the innermost wrapper."""
    while isinstance(env.env, gymnasium.Wrapper):
        env = env.env
    return env


def _level_env(template: gymnasium.Env[Any, str], level: str | Mapping[str, Any]) -> gymnasium.Env[Any, str]:
    """Create the environment of a level."""
    if template.spec is None:
        raise ConfigError(f"curriculum cannot make levels of {template}: make the environment with gymnasium.make.")
    options = {"id": level} if isinstance(level, str) else dict(level)
    env_id = options.pop("id", template.spec.id)
    if not is_registered(env_id):  # never a "module:id", which would import what a recorded file names
        raise UnknownName(f"no environment named {env_id!r} for a level. {nearest(str(env_id), gymnasium.registry)}")
    spec = template.spec if env_id == template.spec.id else gymnasium.registry[env_id]
    made: gymnasium.Env[Any, str] = gymnasium.make(spec, render_mode=template.render_mode, **options)
    if made.observation_space != template.observation_space or made.action_space != template.action_space:
        made.close()
        raise ConfigError(
            f"the level {level!r} of curriculum shows {made.observation_space}, but the environment shows "
            f"{template.observation_space}: levels must have equal spaces."
        )
    return made
