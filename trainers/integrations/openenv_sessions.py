"""Sessions of a server: each has its own environment, seed and faults."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from turngym.errors import ConfigError, EpisodeOver, UnknownName
from turngym.seeding import stream_seed
from turngym.trainers.integrations.openenv_messages import (
    Body,
    Refusal,
    invalid,
    observation_data,
    read_action,
    read_reset,
)
from turngym.trainers.integrations.threads import Broke, Threads

_LONGEST_FAULT = 300
_CLOSING_SECONDS = 10.0


@dataclass(frozen=True)
class Limits:
    """What a server allows.

    Args:
        max_sessions: Sessions at once.
        idle_seconds: A session without messages for that long is ended.
        step_seconds: A step that takes longer is a fault of its session.
        reset_seconds: The same for a reset, which may include making the environment.
        threads: Environments that may run at once; None for one for each session.
        max_abandoned: Limit on hung environments: once reached, no further one is made.
        named_seconds: A named session that is idle for that long may be replaced by a new one if all are in use.
        seed: Sessions that name no seed get one that follows from this; None for any seed.

    Raises:
        ConfigError: A limit is not positive.
    """

    max_sessions: int = 1024
    idle_seconds: float = 1800.0
    step_seconds: float = 60.0
    reset_seconds: float = 120.0
    threads: int | None = None
    max_abandoned: int = 8
    named_seconds: float = 60.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name != "seed" and not 0 < value < float("inf"):
                raise ConfigError(f"{field.name} of a server must be greater than 0, got {value!r}.")

    @property
    def max_named(self) -> int:
        """Largest number of named sessions: half of all, so that WebSockets always find a free one."""
        return max(1, self.max_sessions // 2)


class Session:
    """One client's environment. Its methods return messages, and are called sequentially.

    Args:
        make: Makes the environment.
        threads: Where the environment runs, always outside of the event loop.
        limits: What the server allows.
        first_seed: Seed of the first episode, unless the client names one.
    """

    def __init__(self, make: Callable[[], Any], threads: Threads, limits: Limits, first_seed: int) -> None:
        self._make, self._threads, self._limits = make, threads, limits
        self._first_seed: int | None = first_seed
        self._env: Any = None
        self.episode_id: str | None = None
        self.turn = 0

    async def answer(self, kind: str, data: Body) -> Body:
        """Return the answer to a message; a refusal is an answer too."""
        try:
            if kind == "reset":
                return {"type": "observation", "data": await self.reset(data)}
            if kind == "step":
                return {"type": "observation", "data": await self.step(data)}
            return {"type": "state", "data": self.state()}
        except Refusal as refusal:
            return refusal.message()

    async def reset(self, data: Body) -> Body:
        """Begin an episode and return the data of the first observation.

        Raises:
            Refusal: The arguments are wrong, or the environment broke; the next reset begins with a fresh one.
        """
        seed, episode, task = read_reset(data)
        if self._env is None:
            self._env = await self._made()
        given = seed if seed is not None else self._first_seed
        options = None if task is None else {"task": task}
        try:
            observation, info = await self._call("reset", self._limits.reset_seconds, seed=given, options=options)
        except (ConfigError, UnknownName) as error:
            raise invalid(str(error), ["task"]) from error
        self._first_seed, self.turn = None, 0
        self.episode_id = episode if episode is not None else str(uuid.uuid4())
        more = {"instructions": str(_get(self._env, "instructions", "")), "seed": given, "episode_id": self.episode_id}
        return observation_data(observation, info, more=more)

    async def step(self, data: Body) -> Body:
        """Take a turn and return the data of the observation.

        Raises:
            Refusal: The action has no text, there is no running episode, or the environment broke.
        """
        action = read_action(data)
        if self._env is None:
            raise Refusal("EXECUTION_ERROR", "no episode is under way: send a reset first.")
        observation, reward, *ended, info = await self._call("step", self._limits.step_seconds, action)
        self.turn += 1
        return observation_data(observation, info, float(reward), (bool(ended[0]), bool(ended[1])))

    def state(self) -> Body:
        """Return the name of the episode and its number of turns; nothing hidden."""
        return {"episode_id": self.episode_id, "step_count": self.turn}

    async def close(self) -> None:
        """Close the environment; one that hangs is abandoned."""
        env, self._env = self._env, None
        if env is None:
            return
        with contextlib.suppress(Exception):  # a broken environment may fail to close
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._threads.run(env.close)

    async def _made(self) -> Any:
        hanging = self._threads.given_up
        if hanging >= self._limits.max_abandoned:
            words = f"{hanging} environments of this server hang, so it makes no other: have it started again."
            raise Refusal("CAPACITY_REACHED", words)
        try:
            async with asyncio.timeout(self._limits.reset_seconds):
                return await self._threads.run(self._make)
        except Exception as error:  # the boundary that records it
            raise Refusal("FACTORY_ERROR", f"the environment could not be made: {_words(error)}") from error

    async def _call(self, name: str, seconds: float, *args: Any, **kwargs: Any) -> Any:
        """Call the environment; an error ends the episode and closes the environment."""
        env, limit = self._env, asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._threads.run(getattr(env, name), *args, after_all=env.close, **kwargs)
        except EpisodeOver as error:
            raise Refusal("EXECUTION_ERROR", str(error)) from error
        except asyncio.CancelledError:  # the server ends
            self._leave()
            raise
        except (Exception, SystemExit, GeneratorExit) as error:  # the boundary that records it
            if name == "reset" and isinstance(error, ConfigError | UnknownName):
                raise
            if limit.expired():
                self._leave()
            await self.close()
            fault = f"{name} took longer than {seconds:g} seconds" if limit.expired() else _words(error)
            raise Refusal("EXECUTION_ERROR", f"{fault}. The episode is over: send a reset.") from error

    def _leave(self) -> None:
        """Leave an environment to its thread, which closes it when its method returns."""
        self._env = None


class Sessions:
    """All sessions of a server.

    Args:
        make: Makes one environment.
        limits: What the server allows.
    """

    def __init__(self, make: Callable[[], Any], limits: Limits) -> None:
        self.limits = limits
        self.threads = Threads(limits.threads or limits.max_sessions)
        self.opened = 0
        """Number of sessions opened so far."""
        self._make = make
        self._open: set[Session] = set()

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> Session:
        """Return a fresh session.

        Raises:
            Refusal: The server's limit is reached.
        """
        most = self.limits.max_sessions
        if len(self._open) >= most:
            raise Refusal(
                "CAPACITY_REACHED",
                f"all {most} sessions are in use: try again later, or start the server with more (--max-sessions).",
                active_sessions=len(self._open),
                max_sessions=most,
            )
        seed = self.limits.seed
        first = secrets.randbits(31) if seed is None else stream_seed("openenv", seed, self.opened) % 2**31
        session = Session(self._make, self.threads, self.limits, first)
        self.opened += 1
        self._open.add(session)
        return session

    async def close(self, session: Session) -> None:
        """End a session."""
        try:
            await session.close()
        finally:
            self._open.discard(session)

    async def close_all(self) -> None:
        """End every session, and the threads."""
        await asyncio.gather(*[self.close(session) for session in [*self._open]])
        self.threads.close()


def _get(env: Any, name: str, default: Any) -> Any:
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else default


def _words(error: BaseException) -> str:
    """Return an error on one line."""
    name = "" if isinstance(error, Broke) else f"{type(error).__name__}: "
    return " ".join(f"{name}{error}".rstrip(": ").split())[:_LONGEST_FAULT]
