"""Environments of a server's sessions: they run in threads, never on the event loop, and within limits of time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

from turngym.envs.servers.threads import Broke, Threads
from turngym.errors import ConfigError, EpisodeOver, UnknownName

T = TypeVar("T")
_LONGEST_FAULT = 300
_CLOSING_SECONDS = 10.0


@dataclass(frozen=True)
class HostLimits:
    """Limits of a server that hosts environments.

    Args:
        max_sessions: Maximum number of sessions.
        idle_seconds: Idle time until a session without reset or step is closed; other messages do not count.
        spare_seconds: One that is idle for that long may be replaced by a new session if all are in use.
        step_seconds: A step that takes longer is a fault of its session.
        reset_seconds: Time limit of a reset, including creation of the environment.
        threads: Environments that may run at once; None for one for each session.
        max_abandoned: Limit on hung environments: once reached, no further one is made.

    Raises:
        ConfigError: A limit is not positive.
    """

    max_sessions: int = 1024
    idle_seconds: float = 1800.0
    spare_seconds: float = 60.0
    step_seconds: float = 60.0
    reset_seconds: float = 120.0
    threads: int | None = None
    max_abandoned: int = 8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name != "seed" and not 0 < value < float("inf"):
                raise ConfigError(f"{field.name} of a server must be greater than 0, got {value!r}.")


class EnvFault(Exception):
    """An environment that broke, took too long, or was not made.

    Args:
        text: The reason.
        kind: ``full`` if too many environments hang, ``make`` if this one cannot be made, ``call`` if a call failed.
    """

    def __init__(self, text: str, kind: Literal["full", "make", "call"]) -> None:
        super().__init__(text)
        self.kind = kind


class HostedEnv:
    """One environment that runs in threads. Its methods are called sequentially.

    Args:
        make: Makes the environment.
        threads: Threads to run it in.
        limits: Limits of the server.
    """

    def __init__(self, make: Callable[[], Any], threads: Threads, limits: HostLimits) -> None:
        self._make, self._threads, self._limits = make, threads, limits
        self._env: Any = None

    @property
    def is_made(self) -> bool:
        """True if there is an environment."""
        return self._env is not None

    async def ensure_made(self) -> None:
        """Make the environment unless there is one.

        Raises:
            EnvFault: It cannot be made, or too many environments of this server hang.
        """
        if self._env is not None:
            return
        hanging = self._threads.given_up
        if hanging >= self._limits.max_abandoned:
            text = f"{hanging} environments of this server hang, so it makes no other: have it started again."
            raise EnvFault(text, "full")
        made: list[Any] = []
        try:
            async with asyncio.timeout(self._limits.reset_seconds):
                await self._threads.run(lambda: made.append(self._make()), after_all=lambda: made[0].close())
        except Exception as error:  # user code: recorded here
            raise EnvFault(f"the environment could not be made: {_words(error)}", "make") from error
        (self._env,) = made

    async def reset(self, call: Callable[[Any], T]) -> T:
        """Make the environment unless there is one, and call a function with it that resets it.

        Args:
            call: Called in a thread with the environment.

        Raises:
            EnvFault: The environment broke or took too long; it is closed, and the next reset makes another.
            ConfigError: It refuses its options, as it does with an unknown name (:class:`UnknownName`).
        """
        await self.ensure_made()
        return await self._call("reset", call, self._limits.reset_seconds)

    async def step(self, call: Callable[[Any], T]) -> T:
        """Call a function with the environment that takes a step in it.

        Args:
            call: Called in a thread with the environment.

        Raises:
            EnvFault: The environment broke or took too long; it is closed, and the next reset makes another.
            EpisodeOver: The episode is over.
        """
        return await self._call("step", call, self._limits.step_seconds)

    async def _call(self, name: str, call: Callable[[Any], T], seconds: float) -> T:
        env, limit = self._env, asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._threads.run(call, env, after_all=env.close)  # type: ignore[no-any-return]
        except EpisodeOver:
            raise
        except asyncio.CancelledError:  # the server ends: the thread closes it when its method returns
            self._env = None
            raise
        except (Exception, SystemExit, GeneratorExit) as error:  # user code: recorded here
            if name == "reset" and isinstance(error, ConfigError | UnknownName):
                raise
            if limit.expired():
                self._env = None
            await self.close()
            fault = f"{name} took longer than {seconds:g} seconds" if limit.expired() else _words(error)
            raise EnvFault(fault, "call") from error

    async def close(self) -> None:
        """Close the environment; one that hangs is abandoned."""
        env, self._env = self._env, None
        if env is None:
            return
        with contextlib.suppress(Exception):  # a broken environment may fail to close
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._threads.run(env.close)


def _words(error: BaseException) -> str:
    """Return an error on one line."""
    name = "" if isinstance(error, Broke) else f"{type(error).__name__}: "
    return " ".join(f"{name}{error}".rstrip(": ").split())[:_LONGEST_FAULT]
