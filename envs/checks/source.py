"""What can be checked: an id, a class of a module or of a file, an environment, a function that makes one."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from turngym.envs.checks.case import Env, Maker
from turngym.envs.core import TextEnv
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.plugins import is_registered

EnvOrMaker: TypeAlias = str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]
_FILE_PREFIX = "turngym_file_"
_VERSION = re.compile(r"-v\d+$")
_GYMNASIUM = (None, "phys2d", "tabular")


@dataclass(frozen=True, slots=True)
class FromSpec:
    """Makes a registered environment, also in a process where it is not registered.

    Args:
        spec: What is registered.
        options: Options.
    """

    spec: EnvSpec
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **options: Any) -> Env:
        """Return a fresh environment."""
        return gymnasium.make(self.spec, **{**self.options, **options})


@dataclass(frozen=True, slots=True)
class FromFile:
    """Makes an environment of a class, or a function, in a file that need not be installed.

    Args:
        path: The file.
        name: Name in the file.
        options: Options.
    """

    path: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **options: Any) -> Env:
        """Return a fresh environment."""
        made: Env = getattr(load_file(Path(self.path)), self.name)(**{**self.options, **options})
        return made


@dataclass(frozen=True, slots=True)
class FromClass:
    """Makes an environment of a class or a function that is at hand, with wrappers around it.

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
    """Return the name of what is to be checked, and what makes copies of it.

    Args:
        env: An id, ``"module:id"``, ``"module:Class"``, ``"path/to/file.py:Class"``, an environment, wrapped or not, or
            a function or class that makes one.
        options: Options of the constructor.

    Raises:
        UnknownName: There is no such id, module, file, or name in it.
        ConfigError: It is no environment, or it does not know how it was made.

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
    place, _, last = name.rpartition(":")
    if place.endswith(".py"):
        module: Any = load_file(Path(place))
        _require_environment(module, last, place)
        return FromFile(str(Path(place).resolve()), last, options)
    if place:
        module = _imported(place, name)
    if last in gymnasium.registry or (not place and is_registered(last)):
        return FromSpec(gymnasium.registry[last], options)
    if place:
        return FromClass(_require_environment(module, last, place), options)
    raise UnknownName(f"no environment named {name!r}. {nearest_env(name)}")


def _imported(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise UnknownName(
            f"no module named {missing!r}, which {name!r} needs: check the spelling, or install it."
        ) from error


def _require_environment(module: Any, name: str, place: str) -> Callable[..., Env]:
    """Return the class or function of that name."""
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, gymnasium.Env) and found is not gymnasium.Env:
        return found
    if inspect.isfunction(found):
        return found
    if found is not None:
        raise ConfigError(f"{name} of {place} must be a class of turngym.envs.TextEnv, or a function that makes one.")
    known = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, TextEnv) and value.__module__ == module.__name__
    ]
    hint = nearest(name, known) if known else "It has no class of turngym.envs.TextEnv at all."
    raise UnknownName(f"{place} has no {name!r}. {hint}")


def load_file(path: Path) -> Any:
    """Return the module of a Python file that need not be installed; modules beside it can be imported by it.

    Raises:
        UnknownName: There is no such file.
    """
    path = path.resolve()
    if not path.is_file():
        beside = sorted(str(other.name) for other in path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = f" {nearest(path.name, beside)}" if beside else ""
        raise UnknownName(f"there is no file {path}.{hint}")
    name = _FILE_PREFIX + "".join(character if character.isalnum() else "_" for character in str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def nearest_env(name: str, others: Iterable[str] = ()) -> str:
    """Return the second half of a message about an unknown id: the nearest one, whatever its case and version.

    Args:
        name: What was asked for.
        others: Names of another kind that could be meant as well.

    >>> import turngym
    >>> nearest_env("sokobann")
    "Did you mean 'turngym/Sokoban-v0'? `turngym list` shows all."
    """
    ids = [env_id for env_id, spec in gymnasium.registry.items() if spec.namespace not in _GYMNASIUM]
    known = {_core(known): known for known in (*sorted(ids), *others)}
    close = difflib.get_close_matches(_core(name), known, n=1, cutoff=0.6)
    hint = f"Did you mean {known[close[0]]!r}? " if close else ""
    return f"{hint}`turngym list` shows all."


def _core(name: str) -> str:
    """Return the bare name of an id: that of ``turngym/FrozenLake-v0`` is ``frozenlake``."""
    bare = _VERSION.sub("", name.rpartition("/")[2])
    return "".join(character for character in bare.lower() if character.isalnum())
