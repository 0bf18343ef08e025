"""Environments whose actions are calls of tools: typed methods of their class."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.tools.tool_schema import NOTATION, Tool, ToolSet, find_call, read_call, tool_of, write_call
from turngym.errors import BrokenCode

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
_RULES = """{rules}
Act by calling a tool:
{notation}
Tools:
{schemas}"""
_LONGEST_PROBLEM = 1000


def tool(function: FunctionT) -> FunctionT:
    """Declare a method of a :class:`ToolEnv` as a tool.

    Its name, the first paragraph of its docstring, and the types, defaults and ``Args:`` of its parameters become the
    declaration that models get.
    """
    function.__is_tool__ = True  # type: ignore[attr-defined]  # read by _tools_of
    return function


def tool_call(name: str, **arguments: Any) -> str:
    """Return the action that calls a tool, for experts and tests.

    >>> tool_call("dig", row=1, column=2)
    '<tool_call>{"name": "dig", "arguments": {"row": 1, "column": 2}}</tool_call>'
    """
    return write_call(name, arguments)


class ToolEnv(TextEnv[Any]):
    """A :class:`TextEnv` whose actions are calls of its methods marked with :func:`tool`.

    A subclass implements tools instead of ``apply_action``. Arguments arrive checked against their types. A tool
    returns the next observation as text, an :class:`Outcome`, None for ``self.observation()``, or any other JSON value.
    Models with native tool calls get the tools as declarations; for others, declarations and notation are added to
    ``instructions``. Anything that is no proper call is answered as an invalid action. With
    :class:`turngym.envs.PictureEnv` as a second base, results are also pictures.

    >>> class Counter(ToolEnv):
    ...     instructions = "Count to 2."
    ...     def initial_state(self, generator):
    ...         return int(generator.integers(-1000, 0))
    ...     def observation(self):
    ...         return f"The counter shows {self.state}."
    ...     @tool
    ...     def add(self, number: int):
    ...         '''Add a number to the counter.'''
    ...         self.state += number
    ...         return Outcome(self.observation(), float(self.state == 2), self.state == 2, self.state == 2)
    >>> env = Counter()
    >>> observation, info = env.reset(seed=0)
    >>> env.step(tool_call("add", number=2 - env.state))[:3]
    ('The counter shows 2.', 1.0, True)
    >>> env.reset(seed=0)[0] and env.step(tool_call("add", number="two"))[0]
    "add: number must be integer, got 'two'."
    """

    finds_action = True

    def after_setup(self) -> None:
        """Declare the tools, and add their notation to the instructions."""
        schemas = tuple(each.schema for each in _tools_of(type(self)).values())
        self.native_tools = ToolSet(schemas, self.instructions)
        shown = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
        self.instructions = _RULES.format(notation=NOTATION, rules=self.instructions, schemas=shown)

    def apply_action(self, action: str) -> Outcome[Any]:
        """Call the tool; anything that is no proper call is answered."""
        text = find_call(action)
        if text is None:
            return Outcome(f"There is no tool call: write {NOTATION}.", action_is_valid=False)
        found, arguments, problem = read_call(text, _tools_of(type(self)))
        if found is None:
            return Outcome(harmless(cut(problem, _LONGEST_PROBLEM)), action_is_valid=False)
        return self._outcome(found.name, getattr(self, found.name)(**arguments))

    def _outcome(self, name: str, result: Any) -> Outcome[Any]:
        if isinstance(result, Outcome):
            return result
        if result is None:
            return Outcome(self.observation())
        try:
            return Outcome(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False))
        except (TypeError, ValueError) as error:
            raise BrokenCode(
                f"the tool {name} of {self.env_id} must return a text, an Outcome, None or a JSON value: {error}."
            ) from error


@lru_cache(maxsize=256)
def _tools_of(kind: type[ToolEnv]) -> Mapping[str, Tool]:
    """Return the tools of a class by name, in the order of their definition.

    Raises:
        BrokenCode: It has none, or one hides a method of the environment.
        ConfigError: An argument has no type that JSON knows.
    """
    defined = [(name, found) for base in reversed(kind.__mro__) for name, found in vars(base).items()]
    names = dict.fromkeys(name for name, found in defined if hasattr(found, "__is_tool__"))
    hidden = [name for name, found in defined if name in names and not hasattr(found, "__is_tool__")]
    if hidden:
        raise BrokenCode(f"{kind.__qualname__} has a tool {hidden[0]}, which the class needs itself: rename it.")
    if not names:
        raise BrokenCode(f"{kind.__qualname__} has no tools: mark its methods with @tool, from turngym.envs.")
    tools = [tool_of(getattr(kind, name).__get__(object())) for name in names]
    return {each.name: each for each in tools}
