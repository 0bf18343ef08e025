"""Worlds of the package crafter that repeat: creatures in a fixed order, no images, and starts that are kept.

The package holds the creatures of an area in a set, whose order follows addresses in memory, and draws one of them by
its place: the same seed and actions lead to different worlds. Here they are held in the order of their arrival.
"""

from __future__ import annotations

import copy
import functools
import importlib
from collections import defaultdict
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.adapters.borrowed import import_package

_NOISE = (63, 49)
"""Pixels that the package's image of 64 by 64 shows of the world; it draws noise for each of them in the dark."""
_KEPT = 64
_PACKAGE = ("crafter", "turngym/Crafter-v0", "crafter", "crafter")


class _InOrder:
    """What the package needs of a set, in the order of arrival."""

    def __init__(self) -> None:
        self._members: dict[Any, None] = {}

    def add(self, member: Any) -> None:
        self._members[member] = None

    def remove(self, member: Any) -> None:
        del self._members[member]

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._members))


class _Start(NamedTuple):
    """A generated world: its cells, its creatures with their places, and the generator after all draws."""

    cells: bytes
    creatures: tuple[tuple[str, int, int], ...]
    generator: Any


@functools.lru_cache(maxsize=1)
def package() -> Any:
    """Import the package.

    Raises:
        MissingExtra: It is not installed.
    """
    found = import_package(*_PACKAGE)
    noise: Any = importlib.import_module("opensimplex.internals")
    if isinstance(noise._noise3, FunctionType):  # not compiled by numba: reading a list is several times as fast
        noise.GRADIENTS3 = list(map(int, noise.GRADIENTS3))
    return found


def _empty(env: Any, seed: int) -> None:
    """Reset an environment of the package as it does itself, up to the generation of the world."""
    world, kinds = env._world, package().objects
    env._seed, env._episode, env._step = seed, 1, 0
    world.reset(seed=hash((seed, 1)) % (2**31 - 1))
    world._chunks = defaultdict(_InOrder)
    env._update_time()
    env._player = kinds.Player(world, (world.area[0] // 2, world.area[1] // 2))
    env._last_health = env._player.health
    world.add(env._player)
    env._unlocked = set()


@functools.lru_cache(maxsize=_KEPT)
def _start(seed: int, area: int) -> _Start:
    crafter = package()
    env = opened(area)
    _empty(env, seed)
    crafter.worldgen.generate_world(env._world, env._player)
    others = [each for each in env._world.objects if each is not env._player]
    creatures = [(type(each).__name__, int(each.pos[0]), int(each.pos[1])) for each in others]
    return _Start(env._world._mat_map.tobytes(), tuple(creatures), env._world.random.get_state())


@functools.lru_cache(maxsize=1)
def _model() -> Any:
    return package().Env(seed=0, length=None)


def opened(area: int) -> Any:
    """Return an environment of the package that makes no images.

    Args:
        area: Cells of a side of the world.
    """
    env = copy.copy(_model())  # which has read the pictures of the package
    env._world = package().engine.World((area, area), package().constants.materials, (12, 12))
    env._sem_view = lambda: None

    def nothing_seen() -> None:
        if env._world.daylight < 0.5:
            env._world.random.uniform(32, 127, _NOISE)

    env._obs = nothing_seen
    return env


def enter(env: Any, seed: int) -> None:
    """Start the first episode of the package's ``Env(seed=seed)`` in an environment that :func:`opened` returned."""
    _empty(env, seed)
    world, kinds = env._world, package().objects
    start = _start(seed, world.area[0])
    world._mat_map[:] = np.frombuffer(start.cells, np.uint8).reshape(world.area)
    for kind, x, y in start.creatures:
        followed = (env._player,) if kind in ("Zombie", "Skeleton") else ()
        world.add(getattr(kinds, kind)(world, (x, y), *followed))
    world.random.set_state(start.generator)
