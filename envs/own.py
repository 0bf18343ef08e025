"""Environments by name: a registered id, ``module:id``, or a class or function in a user's module or file."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from turngym.envs.registration import games, seat_id
from turngym.errors import UnknownName
from turngym.loading import Wanted, find_in, is_file, load_file, load_place, split_place
from turngym.plugins import is_registered

_VERSION = re.compile(r"-v\d+$")
_GYMNASIUM = (None, "phys2d", "tabular")


def _makes_environments(found: Any) -> bool:
    if isinstance(found, type):
        return (
            issubclass(found, gymnasium.Env) and found is not gymnasium.Env and not issubclass(found, gymnasium.Wrapper)
        )
    return inspect.isfunction(found)


ENVIRONMENT = Wanted(
    "an environment", "a class of turngym.envs.TextEnv, or a function that makes one", _makes_environments
)


@dataclass(frozen=True, slots=True)
class FromFile:
    """Makes an environment from a class or function in a file.

    Args:
        path: The file.
        name: Name in the file.
        options: Options.
    """

    path: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def creator(self) -> Any:
        """The class or function."""
        return getattr(load_file(Path(self.path)), self.name)

    def __call__(self, **options: Any) -> gymnasium.Env[Any, Any]:
        """Return a fresh environment."""
        made: gymnasium.Env[Any, Any] = self.creator(**{**self.options, **options})
        return made


def find_spec(name: str, others: Iterable[str] = (), kind: str = "environment") -> EnvSpec:
    """Return Gymnasium's spec of an environment, registering it for this process if necessary.

    Args:
        name: An id, ``"module:id"``, ``"module:Class"`` or ``"path/to/file.py:Class"``.
        others: Names of another kind, for suggestions.
        kind: Noun for the message.

    Raises:
        UnknownName: There is no such environment, module, file, or name in it.
        BrokenCode: The file or module cannot be imported.
        ConfigError: It is not an environment.

    >>> import turngym
    >>> find_spec("CartPole-v1").id, find_spec("turngym.envs.textgames.tower_of_hanoi:TowerOfHanoi").id
    ('CartPole-v1', 'turngym/TowerOfHanoi-v0')
    """
    place, last = split_place(name)
    module = load_place(place, name) if place else None
    if module is None or not hasattr(module, last):
        if module is not None and "/" not in last and last not in gymnasium.registry:
            find_in(module, place, last, ENVIRONMENT)
        if last in games():
            raise UnknownName(
                f"{last} is a game for several seats and no {kind}: take {seat_id(last)}, one seat of it, or play it "
                f"with `turngym tournament {last}` and `turngym train --game {last}`."
            )
        if not is_registered(last):
            raise UnknownName(f"no {kind} named {last!r}. {nearest_env(last, others)}")
        return _portable(gymnasium.registry[last], place)
    find_in(module, place, last, ENVIRONMENT)
    spec = _portable(_registered(module, place, last) or _plain(module, place, last), place)
    gymnasium.registry[spec.id] = spec
    return spec


def _registered(module: ModuleType, place: str, name: str) -> EnvSpec | None:
    """Return the id that stands for a class without further options."""
    entry_points: list[Any] = [f"{module.__name__}:{name}"]
    if is_file(place):
        entry_points.append(FromFile(str(Path(place).resolve()), name))  # as an earlier call has left it
    same = (spec for spec in gymnasium.registry.values() if spec.entry_point in entry_points)
    return next((spec for spec in same if set(spec.kwargs) <= {"env_id"}), None)


def _plain(module: ModuleType, place: str, name: str) -> EnvSpec:
    namespace = re.sub(r"\W", "-", Path(place).stem if is_file(place) else place)
    entry_point = f"{module.__name__}:{name}"
    return EnvSpec(f"{namespace}/{name}-v0", entry_point, order_enforce=False, disable_env_checker=True)


def _portable(spec: EnvSpec, place: str) -> EnvSpec:
    """Return a registered environment so that another process can make it, also where its code is a file."""
    if not is_file(place) or not isinstance(spec.entry_point, str):
        return spec
    module, _, name = spec.entry_point.partition(":")
    if module != load_file(Path(place)).__name__:
        return spec
    return dataclasses.replace(spec, entry_point=FromFile(str(Path(place).resolve()), name))


def nearest_env(name: str, others: Iterable[str] = ()) -> str:
    """Return the suggestion for an unknown id: the nearest one, ignoring case and version.

    Args:
        name: The unknown id.
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
