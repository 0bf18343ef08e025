"""An environment that a client of MCP plays, episode after episode; what it earns is recorded and never shown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from turngym.envs.core import TextEnv
from turngym.errors import ConfigError, error_text
from turngym.seeding import stream_seed
from turngym.trainers.integrations.mcp_server.protocol import ToolError, seen
from turngym.wrappers.core import TextWrapper


class Episodes:
    """The episodes of a server: their seeds, how many there are, and where they are recorded.

    Args:
        seed: What the seeds of episodes follow from.
        most: How many may begin; 0 for any number.
        records: A file that gets a line of JSON for each episode; None for nothing.

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, seed: int = 0, most: int = 0, records: Path | None = None) -> None:
        self._seed, self._most, self._records = seed, most, records
        self._begun = 0
        self._lock = threading.Lock()
        self.write()

    def begin(self) -> tuple[int, int]:
        """Return number and seed of the next episode.

        Raises:
            ToolError: All have begun.
        """
        with self._lock:
            if self._most and self._begun >= self._most:
                raise ToolError(f"All {self._most} episodes have been played.")
            number, self._begun = self._begun, self._begun + 1
        return number, stream_seed("mcp", self._seed, number) % 2**31

    def write(self, record: Mapping[str, Any] | None = None) -> None:
        """Append the record of an episode; without one only make sure that the file can be written."""
        if self._records is None:
            return
        try:
            with self._lock, self._records.open("a", encoding="utf8") as file:
                if record is not None:
                    file.write(json.dumps(record) + "\n")
        except (OSError, ValueError) as error:
            raise ConfigError(f"the scores cannot be written to {self._records} ({error}): pass a file.") from error


class EnvSession:
    """One environment as tools.

    Args:
        make: Makes the environment.
        episodes: Its episodes.
    """

    def __init__(self, make: Callable[[], TextEnv[Any] | TextWrapper], episodes: Episodes) -> None:
        self._make, self._episodes = make, episodes
        self._env: TextEnv[Any] | TextWrapper | None = None
        self._record: dict[str, Any] | None = None
        self._legal: tuple[str, ...] = ()
        self._lock = threading.Lock()

    async def reset(self) -> str:
        """Begin the next episode; one that is under way counts as abandoned."""
        return await asyncio.to_thread(self._reset)

    async def step(self, action: str) -> str:
        """Take an action."""
        return await asyncio.to_thread(self._step, action)

    async def legal_actions(self) -> tuple[str, ...]:
        """Return the legal actions."""
        with self._lock:
            return self._legal

    def close(self) -> None:
        """Close the environment; an episode that is under way counts as abandoned."""
        with self._lock:
            self._end("abandoned")
            self._drop()

    def _reset(self) -> str:
        with self._lock:
            self._end("abandoned")
            number, seed = self._episodes.begin()
            try:
                if self._env is None:
                    self._env = self._make()
                observation, info = self._env.reset(seed=seed)
                env_id, instance = str(self._env.env_id), str(self._env.instance_hash)
                rules = str(self._env.instructions)
            except Exception as error:  # the boundary: what breaks is the environment, or its options
                self._drop()
                raise ToolError(f"The environment failed: {error_text(error)}") from error
            self._record = {"episode": number, "env": env_id, "instance": instance, "seed": seed}
            self._record |= {"turns": 0, "reward": 0.0, "success": -1, "score": 0.0}
            self._legal = tuple(info["legal_actions"])
            return f"{rules}\n\n{_text(observation)}".strip()

    def _step(self, action: str) -> str:
        with self._lock:
            if self._record is None or self._env is None:
                raise ToolError("No episode is under way: call reset.")
            try:
                observation, reward, terminated, truncated, info = self._env.step(action)
            except Exception as error:  # the boundary: what breaks is the environment
                self._end("fault")
                self._drop()
                raise ToolError(f"The environment failed: {error_text(error)} Call reset.") from error
            record = self._record
            record["turns"] += 1
            record["reward"] += float(reward)
            record["success"], record["score"] = int(info["success"]), float(info["score"])
            self._legal = tuple(info["legal_actions"])
            if terminated or truncated:
                self._end("terminated" if terminated else "truncated")
            return seen(_text(observation), terminated or truncated)

    def _end(self, status: str) -> None:
        record, self._record, self._legal = self._record, None, ()
        if record is not None:
            self._episodes.write({**record, "status": status})

    def _drop(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(Exception):  # it is broken, or over
                env.close()


def _text(observation: Any) -> str:
    return str(observation["text"]) if isinstance(observation, Mapping) else str(observation)
