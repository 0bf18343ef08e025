"""Subjects of a check: an id, a class of a module or file, an environment, a factory function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from turngym.envs.checks.case import Env, Maker
from turngym.envs.core import TextEnv
from turngym.envs.own import ENVIRONMENT, FromFile, find_spec
from turngym.errors import ConfigError
from turngym.loading import find_in, is_file, load_place, split_place

EnvOrMaker: TypeAlias = str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]


@dataclass(frozen=True, slots=True)
class FromSpec:
    """Makes a registered environment, also in a process where it is not registered.

    Args:
        spec: Registered environment.
        options: Options.
    """

    spec: EnvSpec
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **options: Any) -> Env:
        """Return a fresh environment."""
        return gymnasium.make(self.spec, **{**self.options, **options})


@dataclass(frozen=True, slots=True)
class FromClass:
    """Makes an environment from a class or function, with wrappers around it.

    Args:
        kind: The class or function.
        options: Options.
        wrappers: The wrappers with their options, the first innermost.
    """

    kind: Callable[..., Env]
    options: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Sequence[tuple[Callable[..., Env], Mapping[str, Any]]] = ()

    def __call__(self, **options: Any) -> Env:
        """Return a fresh environment."""
        env = self.kind(**{**self.options, **options})
        for wrapper, settings in self.wrappers:
            env = wrapper(env, **settings)
        return env


def source_of(env: EnvOrMaker, options: Mapping[str, Any] | None = None) -> tuple[str, Maker]:
    """Return the name of the environment to check, and a factory for copies of it.

    Args:
        env: An id, ``"module:id"``, ``"module:Class"``, ``"path/to/file.py:Class"``, an environment, wrapped or not, or
            a function or class that makes one.
        options: Options of the constructor.

    Raises:
        UnknownName: There is no such id, module, file, or name in it.
        ConfigError: It is not an environment, or its constructor arguments are unknown.

    >>> import turngym
    >>> source_of("turngym/Sokoban-v0", {"size": 5})[0]
    'turngym/Sokoban-v0'
    """
    chosen = dict(options or {})
    if isinstance(env, str):
        return env, _from_name(env, chosen)
    if not isinstance(env, gymnasium.Env):
        return _name_of(env), FromClass(env, chosen)
    name = str(getattr(env.unwrapped, "env_id", "")) or type(env.unwrapped).__qualname__
    spec = env.spec
    if spec is not None and all(wrapper.kwargs is not None for wrapper in spec.additional_wrappers):
        return name, FromSpec(spec, chosen)
    wrappers = _wrappers_of(env)
    if isinstance(env.unwrapped, TextEnv):
        return name, FromClass(type(env.unwrapped), {**env.unwrapped.settings, **chosen}, wrappers)
    raise ConfigError(f"{env} does not know how it was made: pass its id or a function that makes it.")


def _wrappers_of(env: Env) -> list[tuple[Callable[..., Env], Mapping[str, Any]]]:
    """Return the wrappers around an environment with their options, the innermost first."""
    found: list[tuple[Callable[..., Env], Mapping[str, Any]]] = []
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, RecordConstructorArgs):
            raise ConfigError(
                f"the wrapper {type(env).__name__} does not know how it was made: pass a function that makes it all, "
                "or derive the wrapper from gymnasium.utils.RecordConstructorArgs too."
            )
        settings = {key: value for key, value in env._saved_kwargs.items() if key != "env"}
        found.append((type(env), settings))
        env = env.env
    return found[::-1]


def _name_of(maker: Callable[..., Any]) -> str:
    name = getattr(maker, "__qualname__", type(maker).__qualname__)
    return f"{getattr(maker, '__module__', '')}:{name}"


def _from_name(name: str, options: Mapping[str, Any]) -> Maker:
    place, last = split_place(name)
    module = load_place(place, name) if place else None
    if module is None or not hasattr(module, last):
        return FromSpec(find_spec(name), options)
    found = find_in(module, place, last, ENVIRONMENT)
    return FromFile(str(Path(place).resolve()), last, options) if is_file(place) else FromClass(found, options)
