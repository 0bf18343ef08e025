"""Environments that wait in coroutines, and the slots that run them on an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from turngym.envs.vector.backends.base import Failure
from turngym.envs.vector.backends.worker import Begin, for_caller, rebuild_failed
from turngym.envs.vector.slots.boundary import describe, is_for_program
from turngym.envs.vector.slots.fitting import finite_reward, flag
from turngym.envs.vector.slots.slot import (
    REFUSALS,
    Journal,
    Op,
    Result,
    Slot,
    failed_reset,
    fault_result,
    require_same,
    seed_for,
    stopped_at,
)


@runtime_checkable
class AsyncEnv(Protocol):
    """Interface for the backend ``asyncio``: an environment with coroutines for reset and step.

    The coroutines are equivalent to ``reset`` and ``step``, which other backends call. While a coroutine waits, the
    other slots continue; one that computes long or blocks without ``await`` delays all of them. It is cancelled when it
    exceeds the vector's limit. ``async_close`` is awaited if it exists; otherwise ``close`` runs in a thread. All other
    methods run in threads, never during a coroutine. The outermost wrapper must have the coroutines; otherwise the
    environment runs in a thread.

    >>> class Page:
    ...     async def async_reset(self, *, seed=None, options=None):
    ...         return "a page", {}
    ...     async def async_step(self, action):
    ...         await asyncio.sleep(0)
    ...         return "the next page", 0.0, False, False, {}
    >>> isinstance(Page(), AsyncEnv)
    True
    """

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, as ``reset`` does."""

    async def async_step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn, as ``step`` does."""


async def _in_thread(function: Any, *arguments: Any) -> Any:
    """Call a function in a thread of the running loop's executor."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def _let_pass(error: BaseException) -> None:
    """Reraise what is not a fault of the slot: an interrupt, and the cancellation of a coroutine that took too long."""
    if isinstance(error, asyncio.CancelledError) or is_for_program(error):
        raise error


class AsyncSlot(Slot):
    """A slot that awaits the coroutines of its environment."""

    __slots__ = ()

    def offers_coroutines(self) -> bool:
        """Make the environment, and return whether it offers coroutines."""
        return isinstance(self._living(), AsyncEnv)

    async def attend(self, journal: Journal | None, op: Op, begin: Begin) -> Any:
        """Run one operation after any replay, as :func:`run_job` does in a thread."""
        if journal is not None:
            try:
                await self._async_rebuild(journal, partial(begin, True))
                begin(False)
            except BaseException as error:  # user code: recorded here
                _let_pass(error)
                await self.async_close()
                return rebuild_failed(error, op)
        try:
            if op[0] == "step":
                return await self._async_step(op[1])
            if op[0] == "reset":
                return await self._async_reset(op[1], op[2])
            return await _in_thread(self.run, op)
        except BaseException as error:  # raised again where the caller is
            _let_pass(error)
            return Failure(for_caller(error))

    async def async_close(self) -> None:
        """Close the environment, if there is one."""
        env, self._env, self.start = self._env, None, None
        if env is None:
            return
        try:
            close = getattr(env, "async_close", None)
            if inspect.iscoroutinefunction(close):
                await close()
            else:
                await _in_thread(env.close)
        except BaseException as error:  # user code: a broken environment may fail to close
            _let_pass(error)

    async def _async_step(self, action: Any) -> Result:
        try:
            env = await self._async_living()
            observation, reward, terminated, truncated, info = await env.async_step(action)
            observation, info = self._checked(env, observation, info)
            ends = flag("terminated", terminated), flag("truncated", truncated)
            return observation, finite_reward(reward), *ends, info, ()
        except BaseException as error:  # user code: recorded here
            _let_pass(error)
            await self.async_close()
            return fault_result(describe(error))

    async def _async_reset(self, seed: int | None, options: dict[str, Any] | None) -> Result:
        start: tuple[str, Any] | None = None if seed is None else ("seed", seed)
        faults: list[str] = []
        for attempt in range(2):
            env = None
            try:
                env = await self._async_living()
                start = start or ("generator", env.unwrapped.np_random.bit_generator.state)
                given = seed_for(env, start, fresh=attempt > 0)
                observation, info = await env.async_reset(seed=given, options=options)
                observation, info = self._checked(env, observation, info)
            except REFUSALS:
                raise
            except BaseException as error:  # user code: recorded here
                _let_pass(error)
                faults.append(describe(error))
                start = start if seed is not None else stopped_at(env) or start
                await self.async_close()
            else:
                self.start = start
                return observation, 0.0, False, False, info, tuple(faults)
        return failed_reset(faults)

    async def _async_rebuild(self, journal: Journal, on_part: Callable[[], None]) -> None:
        """Rebuild the slot from its journal, as :meth:`rebuild` does."""
        on_part()
        await self.async_close()
        self._attributes = dict(journal.attributes)
        env = await self._async_living()
        if journal.start is None:
            return
        if journal.start[0] == "snapshot":
            observation = (await _in_thread(self.restore, journal.start[1]))[0]
        else:
            seed = seed_for(env, journal.start, fresh=True)
            observation, _ = await env.async_reset(seed=seed, options=journal.options)
        self.start = journal.start
        for op in journal.log:
            on_part()
            if op[0] == "step":
                observation = (await env.async_step(op[1]))[0]
            else:
                await _in_thread(self.run, op)
        require_same(observation, journal.last)

    async def _async_living(self) -> Any:
        return self._env if self._env is not None else await _in_thread(self._living)
