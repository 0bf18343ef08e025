"""Environments whose exceptions, results and processes are as hard on a vector as Python allows."""

import asyncio
import os
from typing import Any

import numpy as np
from toy_envs import Faulty


class Silent(Exception):
    """An exception that cannot be read."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Deadly(Exception):
    """An exception whose text ends the program."""

    def __str__(self) -> str:
        raise SystemExit(9)

    __repr__ = __str__


class Lazy(dict[str, Any]):
    """An info whose values raise when they are read."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError(key)

    def keys(self) -> Any:
        raise RuntimeError("no keys")


RAISES: dict[str, BaseException] = {
    "silent": Silent(),
    "deadly": Deadly(),
    "huge": ValueError("x" * 50_000_000),
    "surrogate": ValueError("half \ud800 a letter"),
    "leave": SystemExit(3),
    "generator": GeneratorExit("end"),
    "cancelled": asyncio.CancelledError("stop"),
    "base": BaseException("a base"),
}
"""What is raised -> by what name."""
REWARDS: dict[str, Any] = {
    "nan": float("nan"),
    "infinite": float("inf"),
    "numpy nan": np.float32("nan"),
    "text": "1.5",
    "none": None,
    "list": [1.0],
    "array": np.ones(2),
}
INFOS: dict[str, tuple[str, Any]] = {
    "text score": ("score", "high"),
    "nan score": ("score", float("nan")),
    "no progress": ("progress", None),
    "endless progress": ("progress", float("inf")),
    "success 7": ("success", 7),
    "text success": ("success", "yes"),
    "anchor": ("anchor", b"bytes"),
    "actions": ("legal_actions", ("up", 7)),
    "one action": ("legal_actions", "up"),
    "validity": ("action_is_valid", "no"),
    "fault": ("fault", None),
    "components": ("reward_components", {"paid": "much"}),
}


class Hostile(Faulty):
    """A counter whose actions, and whose methods by choice, do what this module lists.

    Args:
        where: The method that raises, besides ``step``.
        what: What it raises.
    """

    def __init__(self, where: str = "", what: str = "silent") -> None:
        super().__init__()
        self.where, self.what, self.num_resets = where, what, 0

    def _meet(self, where: str) -> None:
        if where == self.where:
            raise RAISES[self.what]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self.num_resets += 1
        self._meet("reset")
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "score": "high"} if self.where == "reset info" else info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action in RAISES:
            raise RAISES[action]
        if action == "descriptors":
            os.closerange(3, 1000)
        observation, reward, terminated, truncated, info = super().step(action)
        if action in REWARDS:
            reward = REWARDS[action]
        if action in INFOS:
            key, value = INFOS[action]
            info = {**info, key: value}
        if action == "lazy":
            info = Lazy(info)
        if action == "ends":
            return observation, reward, "no", truncated, info  # type: ignore[return-value]
        return observation, reward, terminated, truncated, info

    def snapshot(self) -> bytes:
        self._meet("snapshot")
        return super().snapshot()

    def restore(self, snapshot: bytes) -> tuple[str, dict[str, Any]]:
        self._meet("restore")
        return super().restore(snapshot)

    def render(self) -> Any:
        self._meet("render")
        return super().render()

    def close(self) -> None:
        self._meet("close")


class HostileWaiting(Hostile):
    """The same in coroutines."""

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.reset(seed=seed, options=options)

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self.step(action)
