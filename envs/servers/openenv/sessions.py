"""Sessions of a server: each has its own environment, seed and faults."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from turngym.envs.servers.hosting import EnvFault, HostedEnv, HostLimits
from turngym.envs.servers.openenv.messages import (
    Body,
    Refusal,
    invalid,
    observation_data,
    read_action,
    read_reset,
)
from turngym.envs.servers.threads import Threads
from turngym.errors import ConfigError, EpisodeOver, UnknownName
from turngym.seeding import stream_seed


@dataclass(frozen=True)
class Limits(HostLimits):
    """Limits of a server for OpenEnv's clients; see :class:`HostLimits` for the others.

    Args:
        seed: Sessions that name no seed get one that follows from this; None for any seed.

    Raises:
        ConfigError: A limit is not positive.
    """

    seed: int | None = None

    @property
    def max_named(self) -> int:
        """Largest number of named sessions: half of all, so that WebSockets always find a free one."""
        return max(1, self.max_sessions // 2)


class Session:
    """One client's environment. Its methods return messages, and are called sequentially.

    Args:
        make: Makes the environment.
        threads: Thread pool of the environment, outside the event loop.
        limits: Limits of the server.
        first_seed: Seed of the first episode, unless the client names one.
    """

    def __init__(self, make: Callable[[], Any], threads: Threads, limits: Limits, first_seed: int) -> None:
        self._env = HostedEnv(make, threads, limits)
        self._first_seed: int | None = first_seed
        self.episode_id: str | None = None
        self.turn = 0
        self.is_busy = self.is_replaced = False
        self.last_step = time.monotonic()
        """When the last reset or step succeeded, or the session started."""
        self.on_replaced: Callable[[], object] = nothing
        """Called when another session replaces this one."""

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
        """Start an episode and return the data of the first observation.

        Raises:
            Refusal: The arguments are wrong, or the environment broke; the next reset starts with a fresh one.
        """
        seed, episode, task = read_reset(data)
        given = seed if seed is not None else self._first_seed
        options = None if task is None else {"task": task}

        def begin(env: Any) -> tuple[Any, Any, str]:
            observation, info = env.reset(seed=given, options=options)
            return observation, info, str(_get(env, "instructions", ""))

        try:
            with self._in_use():
                observation, info, rules = await self._env.reset(begin)
        except (ConfigError, UnknownName) as error:
            raise invalid(str(error), ["task"]) from error
        except EnvFault as fault:
            raise _refusal(fault) from fault
        self._first_seed, self.turn = None, 0
        self.episode_id = episode if episode is not None else str(uuid.uuid4())
        more = {"instructions": rules, "seed": given, "episode_id": self.episode_id}
        return observation_data(observation, info, more=more)

    async def step(self, data: Body) -> Body:
        """Take a turn and return the data of the observation.

        Raises:
            Refusal: The action has no text, there is no running episode, or the environment broke.
        """
        action = read_action(data)
        if not self._env.is_made:
            raise Refusal("EXECUTION_ERROR", "no episode is under way: send a reset first.")
        try:
            with self._in_use():
                observation, reward, *ended, info = await self._env.step(lambda env: env.step(action))
        except EpisodeOver as error:
            raise Refusal("EXECUTION_ERROR", str(error)) from error
        except EnvFault as fault:
            raise _refusal(fault) from fault
        self.turn += 1
        return observation_data(observation, info, float(reward), (bool(ended[0]), bool(ended[1])))

    def state(self) -> Body:
        """Return the name of the episode and its number of turns; nothing hidden."""
        return {"episode_id": self.episode_id, "step_count": self.turn}

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        self.is_busy = True
        try:
            yield
            self.last_step = time.monotonic()
        finally:
            self.is_busy = False

    async def close(self) -> None:
        """Close the environment; one that hangs is abandoned."""
        await self._env.close()


class Sessions:
    """All sessions of a server.

    Args:
        make: Makes one environment.
        limits: Limits of the server.
    """

    def __init__(self, make: Callable[[], Any], limits: Limits) -> None:
        self.limits = limits
        self.threads = Threads(limits.threads or limits.max_sessions)
        self.opened = 0
        """Number of sessions opened so far."""
        self._make = make
        self._open: set[Session] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> Session:
        """Return a fresh session, if need be in the place of one that has been idle.

        Raises:
            Refusal: The server's limit is reached.
        """
        most = self.limits.max_sessions
        if len(self._open) >= most and not self.replace_idle(self._open):
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

    def replace_idle(self, sessions: Iterable[Session]) -> bool:
        """End the session of some that has taken no step for longest; False if none has been idle for long enough."""
        now = time.monotonic()
        found = min((each for each in sessions if not each.is_busy), key=lambda each: each.last_step, default=None)
        if found is None or now - found.last_step < self.limits.spare_seconds:
            return False
        self._open.discard(found)
        found.is_replaced = True
        found.on_replaced()
        task = asyncio.create_task(found.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return True

    async def close(self, session: Session) -> None:
        """End a session."""
        try:
            await session.close()
        finally:
            self._open.discard(session)

    async def close_all(self) -> None:
        """End every session, and the threads."""
        await asyncio.gather(*self._closing, *[self.close(session) for session in [*self._open]])
        self.threads.close()


def nothing() -> None:
    """Do nothing."""


def _get(env: Any, name: str, default: Any) -> Any:
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else default


def _refusal(fault: EnvFault) -> Refusal:
    code = {"full": "CAPACITY_REACHED", "make": "FACTORY_ERROR", "call": "EXECUTION_ERROR"}[fault.kind]
    return Refusal(code, f"{fault}. The episode is over: send a reset." if fault.kind == "call" else str(fault))
