"""Tools for any environment: functions that an agent may call before it acts."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import gymnasium

from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.tools.tool_schema import NOTATION, Tool, find_call, read_call, tool_of
from turngym.errors import ConfigError
from turngym.wrappers import WRAPPERS
from turngym.wrappers.actions.action_format import TAG, action_format
from turngym.wrappers.core import StepResult, TextWrapper
from turngym.wrappers.observation import with_text

_SENTENCE = """Before an action you may call tools, at most {most} times in all. A call is all that you write in a turn:
{notation}
Its result is shown to you, and nothing else happens. Tools:
{schemas}"""
_LONGEST = 100_000


class _Told(NamedTuple):
    text: str
    is_valid: bool
    cost: float


@WRAPPERS.register("tools")
class Tools(TextWrapper):
    r"""Lets an agent call functions: their schemas are added to the instructions, results are observations.

    A completion with ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` is a call and does not reach the
    environment. Errors in a call or a tool are returned as the observation. A call is a turn, so ``max_turns`` grows by
    ``max_calls``; further calls are passed on as actions. Tool results are part of the anchor and of snapshots; the
    tools' own state is not.

    Coroutine functions are awaited; under the vector backend ``asyncio`` the other slots continue meanwhile. A tool
    that exceeds ``timeout`` is abandoned: a coroutine is cancelled, a function keeps running in its thread and its
    result is ignored.

    Args:
        env: The environment.
        tools: Functions with type annotations, :class:`~turngym.envs.tools.tool_schema.Tool` objects, or strings such
            as ``"package.module:function"``.
        max_calls: Maximum number of calls per episode.
        cost: Subtracted from the reward of every call.
        error_cost: Additionally subtracted if a call is malformed or fails.
        timeout: Time limit of a call in seconds.
        output: Maximum length of a result in characters.

    >>> import gymnasium, turngym
    >>> def add(a: int, b: int) -> int:
    ...     '''Return the sum of two numbers.'''
    ...     return a + b
    >>> env = Tools(gymnasium.make("turngym/GuessTheNumber-v0"), tools=[add], cost=0.1)
    >>> _ = env.reset(seed=0)
    >>> env.step('<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>')[:2]
    ('<tool_response>\n3\n</tool_response>', -0.1)
    """

    name: ClassVar[str] = "tools"
    unchecked: ClassVar[frozenset[str]] = frozenset({"tools"})

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        tools: Sequence[Callable[..., Any] | Tool | str] = (),
        max_calls: int = 16,
        cost: float = 0.0,
        error_cost: float = 0.0,
        timeout: float = 30.0,
        output: int = 2000,
    ) -> None:
        super().__init__(env)
        self.require("max_calls", max_calls, 1, 10_000, whole=True)
        self.require("output", output, 100, 1_000_000, whole=True)
        self.require("timeout", timeout, 0.001, 86_400)
        for option, value in (("cost", cost), ("error_cost", error_cost)):
            self.require(option, value, 0, 1e6)
        if isinstance(tools, str | Tool) or not isinstance(tools, Sequence):
            raise ConfigError(f"tools of the wrapper tools is a list of tools, got {tools!r}.")
        made = [tool_of(each) for each in tools]
        self._tools = {tool.name: tool for tool in made}
        if len(self._tools) < len(made):
            raise ConfigError(f"two tools have one name: {', '.join(tool.name for tool in made)}.")
        self._most = max_calls if made else 0
        self._cost, self._error_cost, self._timeout, self._output = cost, error_cost, timeout, output
        self._last: dict[str, Any] = {}
        self._seen: Any = ""

    def initial_state(self) -> dict[str, Any]:
        return {"calls": [], "shown": "", "is_valid": True}

    def extra_instructions(self) -> str:
        if not self._most:
            return ""
        schemas = harmless("\n".join(json.dumps(tool.schema, ensure_ascii=False) for tool in self._tools.values()))
        told = _SENTENCE.format(notation=NOTATION, most=self._most, schemas=schemas)
        return told if super().finds_action else f"{told}\n{action_format(TAG).sentence}"

    @property
    def finds_action(self) -> bool:
        """True with tools: calls and actions are both found in a whole completion."""
        return bool(self._most) or super().finds_action

    def transform_action(self, action: str) -> str:
        """Remove the tags of an action, unless the inner environment finds it itself."""
        found = action_format(TAG).read(action) if self._most and not super().finds_action else None
        return action if found is None else found

    @property
    def max_turns(self) -> int:
        """Turns after which an unfinished episode is truncated, calls included."""
        return super().max_turns + self._most

    @property
    def turn(self) -> int:
        """Number of turns of the episode, including calls."""
        return super().turn + len(self.state["calls"])

    @property
    def num_calls(self) -> int:
        """Number of calls in this episode."""
        return len(self.state["calls"])

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        self.state["shown"] = ""
        return step.reward, False

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        self._seen, self._last = observation, dict(info)
        if not self.state["calls"]:
            return observation
        self._add_calls(info)
        return with_text(observation, self.state["shown"]) if self.state["shown"] else observation

    def _add_calls(self, info: dict[str, Any]) -> None:
        info["anchor"] = "\n".join([info["anchor"], *self.state["calls"]])
        if self.state["shown"]:
            info["action_is_valid"] = self.state["is_valid"]

    def _call_in(self, action: Any) -> str | None:
        """Return the call in an action; None if the action is for the environment."""
        if not self._is_running or not isinstance(action, str) or self.num_calls >= self._most:
            return None
        return find_call(action)

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn: a call of a tool, or a turn of the environment."""
        text = self._call_in(action)
        if text is None:
            return super().step(action)
        tool, arguments, problem = read_call(text, self._tools)
        told = self._failed(problem) if tool is None else self._run(tool, arguments)
        return self._taken(text, told)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode with tools that can be called."""
        for tool in self._tools.values():
            tool.ready()
        return super().reset(seed=seed, options=options)

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, as ``reset`` does, in a thread."""
        return await asyncio.to_thread(partial(self.reset, seed=seed, options=options))

    async def async_step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn, as ``step`` does; a tool is awaited."""
        text = self._call_in(action)
        if text is None:
            return await asyncio.to_thread(super().step, action)
        tool, arguments, problem = read_call(text, self._tools)
        told = self._failed(problem) if tool is None else await self._arun(tool, arguments)
        return self._taken(text, told)

    def _taken(self, call: str, told: _Told) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        text = f"<tool_response>\n{told.text}\n</tool_response>"
        self.state["calls"] = [*self.state["calls"], f"{call[:_LONGEST].strip()}\n{text}"]
        self.state["shown"], self.state["is_valid"] = text, told.is_valid
        info = dict(self._last)
        self._add_calls(info)
        return with_text(self._seen, text), 0.0 - told.cost, False, False, info

    def _failed(self, problem: str, *, cost: float = 0.0, is_valid: bool = False) -> _Told:
        text = harmless(cut(problem, self._output))
        return _Told(f"Error: {text}", is_valid, self._cost + self._error_cost + cost)

    def _late(self, tool: Tool) -> _Told:
        return self._failed(
            f"{tool.name} did not answer within {self._timeout:g} seconds.", cost=tool.cost, is_valid=True
        )

    def _result(self, tool: Tool, value: Any) -> _Told:
        text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
        return _Told(harmless(cut(text, self._output)), True, self._cost + tool.cost)

    def _run(self, tool: Tool, arguments: dict[str, Any]) -> _Told:
        """Call a tool in a separate thread, with an event loop for coroutines."""
        found: list[_Told] = []

        def call() -> None:
            found.append(asyncio.run(self._arun(tool, arguments)) if is_coroutine else self._once(tool, arguments))

        is_coroutine = inspect.iscoroutinefunction(tool.call)
        thread = threading.Thread(target=call, name=f"tool {tool.name}", daemon=True)
        thread.start()
        thread.join(self._timeout + (1.0 if is_coroutine else 0.0))
        return found[0] if found else self._late(tool)

    def _once(self, tool: Tool, arguments: dict[str, Any]) -> _Told:
        try:
            return self._result(tool, tool.call(**arguments))
        except Exception as error:  # user code: any exception is reported to the agent
            return self._failed(f"{type(error).__name__}: {error}", cost=tool.cost, is_valid=True)

    async def _arun(self, tool: Tool, arguments: dict[str, Any]) -> _Told:
        if not inspect.iscoroutinefunction(tool.call):
            return await asyncio.to_thread(self._run, tool, arguments)
        try:
            return self._result(tool, await asyncio.wait_for(tool.call(**arguments), self._timeout))
        except TimeoutError:
            return self._late(tool)
        except Exception as error:  # user code: any exception is reported to the agent
            return self._failed(f"{type(error).__name__}: {error}", cost=tool.cost, is_valid=True)
