"""Functions as tools: the schemas of their arguments, the notation of calls, and their validation."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from turngym.envs.parsing.calls import any_calls
from turngym.envs.parsing.thinking import THINKING
from turngym.errors import ConfigError, nearest

_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, Sequence, tuple)
_DICTS = (dict, Mapping)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_LONGEST_CALL = 100_000
_DEEPEST = 64
_MOST_DIGITS = 18
NOTATION = '<tool_call>{"name": "...", "arguments": {...}}</tool_call>'
"""How a call is written in an action."""
CALL_MARK = "<tool_call>"
_ARGUMENT = re.compile(r"^\s+(\w+)(?: \([^)]*\))?: (.*)$")


def always_ready() -> None:
    """Stand for the check of a tool that needs none."""


@dataclass(frozen=True)
class Tool:
    """A function that an agent can call.

    Args:
        name: Its name.
        description: Description in a sentence or two.
        parameters: JSON Schema of its arguments: an object.
        call: Called with the arguments by name; may be a coroutine function.
        cost: Subtracted from the reward at every call, in addition to the wrapper's own cost.
        ready: Called at the start of every episode; raises where the tool cannot be called.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[..., Any]
    cost: float = 0.0
    ready: Callable[[], None] = always_ready

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"the name of a tool is letters, digits and _ . -, got {self.name!r}.")

    def __call__(self, **arguments: Any) -> Any:
        """Call it."""
        return self.call(**arguments)

    @property
    def schema(self) -> dict[str, Any]:
        """Name, description and parameters, in the usual form of declarations."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


class ToolSet(NamedTuple):
    """Tools of an environment for models with native tool calls.

    A native call becomes the action that :func:`write_call` returns; an environment with tools reads it.

    Args:
        tools: Name, description and parameters (JSON Schema) of each tool.
        instructions: Rules without a notation of calls.
    """

    tools: tuple[Mapping[str, Any], ...]
    instructions: str


def write_call(name: str, arguments: Any) -> str:
    r"""Return a call as an action.

    >>> write_call("dig", {"row": 1})
    '<tool_call>{"name": "dig", "arguments": {"row": 1}}</tool_call>'
    >>> print(write_call("run", {"code": "</tool_call>"}))
    <tool_call>{"name": "run", "arguments": {"code": "\u003c/tool_call>"}}</tool_call>
    """
    text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False).replace("<", "\\u003c")
    return f"<tool_call>{text}</tool_call>"


def find_call(action: str) -> str | None:
    """Return the text of the first call in an action, None without one.

    A call inside of the model's thinking is none; one that is not closed is returned with its mark, as malformed.

    >>> find_call('<think>hm</think><tool_call>{"name": "look"}</tool_call>')
    '{"name": "look"}'
    """
    found = THINKING.first_element(action, ("tool_call",))
    if found is not None:
        return found.content
    start = THINKING.masked(action, any_calls).find("<tool_call>")
    return None if start < 0 else action[start:]


def read_call(text: str, tools: Mapping[str, Tool]) -> tuple[Tool | None, dict[str, Any], str]:
    """Return the tool and the arguments of a call, or None and the reason why it cannot be made.

    Args:
        text: The call, any text at all.
        tools: The known tools by name.

    >>> read_call("dig here", {})[2]
    'The call is not closed, or no JSON object of its form: write {"name": "...", "arguments": {...}}.'
    """
    wanted = 'write {"name": "...", "arguments": {...}}'
    call = _parsed(text)
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None, {}, f"The call is not closed, or no JSON object of its form: {wanted}."
    arguments = call.get("arguments", {})
    if call.keys() - {"name", "arguments", "id"} or not isinstance(arguments, dict):
        return None, {}, f"The call needs exactly name and arguments, an object: {wanted}."
    tool = tools.get(call["name"])
    if tool is None:
        return None, {}, f"There is no tool {call['name'][:60]!r}. {nearest(call['name'][:60], tools)}"
    try:
        problem = problem_with(arguments, tool.parameters)
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:  # a server may send anything
        problem = f"its schema is none ({type(error).__name__})"
    return (None, {}, f"{tool.name}: {problem}.") if problem else (tool, arguments, "")


def _parsed(text: str) -> Any:
    """Return a JSON value whose numbers are finite and usual, and which is not too deep; None for anything else."""
    try:
        found = _DECODER.decode(text) if len(text) <= _LONGEST_CALL else None
    except (ValueError, RecursionError):
        return None
    level = [found]
    for _ in range(_DEEPEST):
        lists = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [item for each in lists if isinstance(each, list) for item in each]
        if not level:
            return found
    return None


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError("a whole number of too many digits")
    return int(text)


def _number(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("a number out of range")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_no_constant)


def tool_of(given: Callable[..., Any] | Tool | str) -> Tool:
    """Return a function, or what a text such as ``"package.module:function"`` names, as a tool.

    Every argument needs a type that JSON knows: texts, numbers, truth values, lists, dicts, literals, unions of them.
    The docstring's first paragraph is the description; lines of its ``Args:`` describe the arguments.

    >>> def area(width: float, height: float = 1.0) -> float:
    ...     '''Return the area of a field.'''
    ...     return width * height
    >>> tool_of(area).parameters["required"], tool_of(area).description
    (['width'], 'Return the area of a field.')

    Raises:
        ConfigError: It is none, or an argument has no type of these.
    """
    if isinstance(given, Tool):
        return given
    function = _imported(given) if isinstance(given, str) else given
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise ConfigError(f"a tool is a function, a Tool or a text such as 'package.module:function', got {given!r}.")
    name = getattr(function, "__name__", type(function).__name__)
    try:
        signature, hints = inspect.signature(function), _hints(function)
    except (ValueError, TypeError, NameError) as error:
        raise ConfigError(f"the arguments of the tool {name} cannot be found ({error}): write a function.") from error
    doc = inspect.getdoc(function) or ""
    told = {found[1]: found[2] for found in map(_ARGUMENT.match, doc.splitlines()) if found}
    properties, required = {}, []
    for key, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"the tool {name} takes {str(parameter)!r}: every argument needs a unique name.")
        properties[key] = schema_of(hints.get(key), f"the argument {key!r} of the tool {name}")
        if key in told:
            properties[key] = {**properties[key], "description": told[key]}
        if parameter.default is parameter.empty:
            required.append(key)
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, " ".join(doc.partition("\n\n")[0].split()), parameters, function)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    is_function = inspect.isroutine(function) or inspect.isclass(function)
    return get_type_hints(function if is_function else type(function).__call__)


def _imported(text: str) -> Any:
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"there is no tool {text!r} ({error}): write 'package.module:function'.") from error


def schema_of(kind: Any, what: str) -> dict[str, Any]:
    """Return the JSON Schema of a type.

    >>> schema_of(list[int], "x")
    {'type': 'array', 'items': {'type': 'integer'}}

    Raises:
        ConfigError: JSON does not know it.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is typing.Annotated:
        return schema_of(parts[0], what)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part, what) for part in parts]}
    if kind in _LISTS or (origin in _LISTS and (len(parts) == 1 or parts[1:] == (...,))):
        return {"type": "array", "items": schema_of(parts[0], what)} if parts else {"type": "array"}
    if origin is not None and issubclass(origin, Sequence) and len(parts) == 1:
        return {"type": "array", "items": schema_of(parts[0], what)}
    if kind in _DICTS or (isinstance(origin, type) and issubclass(origin, Mapping) and parts[0] is str):
        return {"type": "object", "additionalProperties": schema_of(parts[1], what)} if parts else {"type": "object"}
    shown = "none" if kind is None else kind
    raise ConfigError(f"{what} needs a type that JSON knows, such as str or list[int], got {shown}.")


def problem_with(value: Any, schema: Mapping[str, Any], where: str = "the arguments") -> str:
    """Return how a value violates a schema, empty if it does not.

    Knows what ``schema_of`` writes, and ``minimum``, ``maximum``, ``required``; leaves other keywords to the tool.

    >>> problem_with({"a": "x"}, {"type": "object", "properties": {"a": {"type": "integer"}}})
    "a must be integer, got 'x'"
    """
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {schema['enum']}, got {_short(value)}"
    if "anyOf" in schema and all(problem_with(value, each, where) for each in schema["anyOf"]):
        return f"{where} fits none of its types, got {_short(value)}"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_a(value, kind) for kind in kinds):
        return f"{where} must be {' or '.join(kinds)}, got {_short(value)}"
    if _is_a(value, "number"):
        if schema.get("minimum", value) <= value <= schema.get("maximum", value):
            return ""
        return f"{where} is out of its range, got {_short(value)}"
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        found = (problem_with(each, schema["items"], f"{where}[{place}]") for place, each in enumerate(value))
        return next(filter(None, found), "")
    return _problem_with_object(value, schema) if isinstance(value, dict) else ""


def _problem_with_object(value: dict[str, Any], schema: Mapping[str, Any]) -> str:
    known = schema.get("properties", {})
    missing = [key for key in schema.get("required", ()) if key not in value]
    if missing:
        return f"{', '.join(missing)} missing"
    more = schema.get("additionalProperties", True)
    unknown = [key for key in value if key not in known]
    if unknown and more is False:
        return f"there is no argument {unknown[0][:40]!r}; known: {', '.join(known) or 'none'}"
    for key, each in value.items():
        wanted = known.get(key, more if isinstance(more, Mapping) else {})
        if found := problem_with(each, wanted, key[:40]):
            return found
    return ""


def _is_a(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    wanted: Mapping[str, Any] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
    return kind not in wanted or isinstance(value, wanted[kind])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
