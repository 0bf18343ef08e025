"""Turns ids and callables into functions that make one environment, here or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError

EnvFn = Callable[[], gymnasium.Env[Any, Any]]
EnvWrapper = Callable[[gymnasium.Env[Any, Any]], gymnasium.Env[Any, Any]]


class TextView(gymnasium.ObservationWrapper[str, Any, Any]):
    """Shows only the text of an environment whose observation also holds other things."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Dict) or not isinstance(space.spaces.get("text"), Unicode):
            raise ConfigError(f'{env} shows no text, so observation="text" does not apply: its space is {space}.')
        self.observation_space = Unicode()

    def observation(self, observation: Mapping[str, Any]) -> str:
        """Return the text."""
        return str(observation["text"])

    def restore(self, snapshot: bytes) -> tuple[str, dict[str, Any]]:
        """Bring back a snapshot."""
        observation, info = self.env.get_wrapper_attr("restore")(snapshot)
        return self.observation(observation), info


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the environment of one slot.

    Args:
        source: A registered environment, or a function that makes one.
        kwargs: Options of the environment.
        wrappers: Applied in order, the first innermost.
        text_only: Whether to show only the text of the observation.
    """

    source: EnvSpec | EnvFn
    kwargs: Mapping[str, Any]
    wrappers: Sequence[EnvWrapper]
    text_only: bool

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """Return a fresh environment."""
        if isinstance(self.source, EnvSpec):
            env: gymnasium.Env[Any, Any] = gymnasium.make(self.source, **self.kwargs)
        else:
            env = self.source()
        for wrapper in self.wrappers:
            env = wrapper(env)
        if self.text_only and not isinstance(env.observation_space, Unicode):
            env = TextView(env)
        return env
