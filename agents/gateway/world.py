"""An environment that an agent program plays through the address of its episode."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from turngym.agents.gateway.mcp.protocol import ToolError, seen
from turngym.agents.gateway.refusal import Body, Refusal
from turngym.text import valid_text


class World:
    """The side of an environment that its agent program sees: what there is to see, and a place for actions.

    Args:
        instructions: The rules.
        observation: First observation.
        on_action: Called with each action; what is seen next comes by :meth:`show`.
        legal_actions: Initial legal actions, if they are enumerable.
    """

    def __init__(
        self,
        instructions: str,
        observation: str,
        on_action: Callable[[str], None],
        legal_actions: Sequence[str] = (),
    ) -> None:
        self.instructions = instructions
        self._observation = observation
        self._on_action = on_action
        self._legal = tuple(legal_actions)
        self._is_done = self._has_begun = False
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Future[Body]] | None = None
        self._lock = threading.Lock()

    def look(self) -> Body:
        """Return what is seen now."""
        return {
            "instructions": valid_text(self.instructions),
            "observation": valid_text(self._observation),
            "done": self._is_done,
        }

    async def act(self, action: str) -> Body:
        """Take an action, and return what is seen then.

        Raises:
            Refusal: The episode is over, or an action is under way.
        """
        with self._lock:
            if self._is_done:
                raise Refusal(409, "the episode is over.", "episode_ended")
            if self._waiting is not None:
                raise Refusal(409, "an action is under way: wait for its answer.")
            loop = asyncio.get_running_loop()
            seen: asyncio.Future[Body] = loop.create_future()
            self._waiting, self._has_begun = (loop, seen), True
        self._on_action(action)
        return await seen

    def show(self, observation: str, is_done: bool = False, legal_actions: Sequence[str] = ()) -> None:
        """Say what is seen now; callable from any thread."""
        with self._lock:
            self._legal = tuple(legal_actions)
            self._observation, self._is_done = observation, self._is_done or is_done
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            loop, seen = waiting
            loop.call_soon_threadsafe(_answer, seen, {"observation": valid_text(observation), "done": self._is_done})

    # The tools of MCP.

    async def reset(self) -> str:
        """Return rules and first observation; the episode is played once, so it does not start again.

        Raises:
            ToolError: An action has been taken.
        """
        if self._has_begun or self._is_done:
            raise ToolError("The episode has begun and is played once: call step.")
        return f"{self.instructions}\n\n{self._observation}".strip()

    async def step(self, action: str) -> str:
        """Take an action, and return what is seen then.

        Raises:
            ToolError: The episode is over, or an action is under way.
        """
        try:
            found = await self.act(action)
        except Refusal as refusal:
            raise ToolError(refusal.message) from refusal
        return seen(found["observation"], found["done"])

    async def legal_actions(self) -> tuple[str, ...]:
        """Return what may be done now, if there is a list."""
        return self._legal


def _answer(seen: asyncio.Future[Body], body: Body) -> None:
    if not seen.done():
        seen.set_result(body)
