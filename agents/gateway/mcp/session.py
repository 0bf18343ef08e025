"""An environment that a client of MCP plays, episode after episode; what it earns is recorded and never shown."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from turngym.agents.gateway.mcp.protocol import ToolError, seen
from turngym.envs.servers.hosting import EnvFault, HostedEnv, HostLimits
from turngym.envs.servers.threads import Threads
from turngym.errors import ConfigError, EpisodeOver, UnknownName
from turngym.seeding import stream_seed
from turngym.types import StrPath

_MOST_CALLS = 16


class Episodes:
    """The episodes of a server: their seeds, how many there are, and where they are recorded.

    Args:
        seed: Base seed of the episodes.
        most: Maximum number of episodes; 0 for no limit.
        records: A file that gets a line of JSON for each episode; None for nothing.

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, seed: int = 0, most: int = 0, records: StrPath | None = None) -> None:
        self._seed, self._most = seed, most
        self._records = None if records is None else Path(records)
        self._begun = 0
        self.write()

    def begin(self) -> tuple[int, int]:
        """Return number and seed of the next episode.

        Raises:
            ToolError: All have started.
        """
        if self._most and self._begun >= self._most:
            raise ToolError(f"All {self._most} episodes have been played.")
        number, self._begun = self._begun, self._begun + 1
        return number, stream_seed("mcp", self._seed, number) % 2**31

    def write(self, record: Mapping[str, Any] | None = None) -> None:
        """Append the record of an episode; without one only make sure that the file can be written."""
        if self._records is None:
            return
        try:
            with self._records.open("a", encoding="utf8") as file:
                if record is not None:
                    file.write(json.dumps(record) + "\n")
        except (OSError, ValueError) as error:
            raise ConfigError(f"the scores cannot be written to {self._records} ({error}): pass a file.") from error


class EnvSession:
    """One environment as tools. It runs in threads, so that no call blocks the event loop.

    Args:
        make: Makes the environment.
        episodes: Its episodes.
        threads: Threads to run it in; None for one of its own.
        limits: Limits of time, and on environments that hang.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        episodes: Episodes,
        threads: Threads | None = None,
        limits: HostLimits | None = None,
    ) -> None:
        self._env = HostedEnv(make, threads or Threads(1), limits or HostLimits())
        self._episodes = episodes
        self._record: dict[str, Any] | None = None
        self._legal: tuple[str, ...] = ()
        self._turn = asyncio.Lock()
        self._calls = 0
        self._is_closed = False
        self.last_step = time.monotonic()
        """When the last reset or step succeeded, or the session started."""

    @property
    def is_busy(self) -> bool:
        """True if a call is under way."""
        return self._calls > 0

    async def reset(self) -> str:
        """Start the next episode; one that is under way counts as abandoned."""
        async with self._called():
            self._end("abandoned")
            number, seed = self._episodes.begin()
            try:
                shown, legal, record = await self._env.reset(lambda env: _begun(env, seed))
            except (EnvFault, ConfigError, UnknownName) as error:
                raise ToolError(f"The environment failed: {error}") from error
            self._record = {"episode": number, **record, "seed": seed}
            self._record |= {"turns": 0, "reward": 0.0, "success": -1, "score": 0.0}
            self._legal = legal
            self.last_step = time.monotonic()
            return shown

    async def step(self, action: str) -> str:
        """Take an action."""
        async with self._called():
            record = self._record
            if record is None:
                raise ToolError("No episode is under way: call reset.")
            try:
                observation, reward, terminated, truncated, info = await self._env.step(lambda env: env.step(action))
            except (EnvFault, EpisodeOver) as error:
                self._end("fault")
                raise ToolError(f"The environment failed: {error} Call reset.") from error
            record["turns"] += 1
            record["reward"] += float(reward)
            record["success"], record["score"] = int(info["success"]), float(info["score"])
            self._legal = tuple(info["legal_actions"])
            self.last_step = time.monotonic()
            if terminated or truncated:
                self._end("terminated" if terminated else "truncated")
            return seen(_text(observation), terminated or truncated)

    async def legal_actions(self) -> tuple[str, ...]:
        """Return the legal actions; those before the step if one is under way."""
        return self._legal

    async def close(self) -> None:
        """Close the environment after the call that is under way; an unfinished episode counts as abandoned."""
        self._is_closed = True
        async with self._turn:
            self._end("abandoned")
            await self._env.close()

    @asynccontextmanager
    async def _called(self) -> AsyncIterator[None]:
        """Let one call follow the other.

        Raises:
            ToolError: The session has ended, or too many calls wait.
        """
        if self._calls >= _MOST_CALLS:
            raise ToolError(f"{_MOST_CALLS} calls of this session are under way: wait for their answers.")
        self._calls += 1
        try:
            async with self._turn:
                if self._is_closed:
                    raise ToolError("The session has ended.")
                yield
        finally:
            self._calls -= 1

    def _end(self, status: str) -> None:
        record, self._record, self._legal = self._record, None, ()
        if record is not None:
            self._episodes.write({**record, "status": status})


def _begun(env: Any, seed: int) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Reset an environment; returns what is shown, the legal actions, and the start of the record."""
    observation, info = env.reset(seed=seed)
    shown = f"{env.instructions}\n\n{_text(observation)}".strip()
    return shown, tuple(info["legal_actions"]), {"env": str(env.env_id), "instance": str(env.instance_hash)}


def _text(observation: Any) -> str:
    return str(observation["text"]) if isinstance(observation, Mapping) else str(observation)
