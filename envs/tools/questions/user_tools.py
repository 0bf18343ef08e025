"""Functions of the user, and tools of MCP servers, as tools of a question: each takes one text and returns another."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.tools.mcp_tools import server_at
from turngym.envs.tools.tool_schema import Tool, always_ready, problem_with
from turngym.errors import ConfigError
from turngym.loading import Wanted, load_object, require_call

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MCP = "mcp:"
_LONGEST_ARGUMENTS = 2000
_SECONDS = 60.0
"""Timeout of a call of a server's tool."""
_WANTED = Wanted("a tool", "a function tool(text) that returns a text", callable)


class UserTool(NamedTuple):
    """A function that an agent may call.

    Args:
        call: Function of the text in the call.
        description: First sentence of its docstring, for the rules.
        ready: See :class:`~turngym.envs.tools.tool_schema.Tool`.
    """

    call: Callable[[str], Any]
    description: str
    ready: Callable[[], None] = always_ready


def load_tools(places: Iterable[str], taken: Collection[str]) -> dict[str, UserTool]:
    """Return name -> tool.

    Args:
        places: ``path/to/file.py:function`` or ``module:function``, or ``mcp:COMMAND`` or ``mcp:http://...`` for all
            tools of an MCP server.
        taken: Names of other calls.

    Raises:
        UnknownName: There is no such file, module or function.
        BrokenCode: The file cannot be imported.
        ConfigError: It is not a function of one text, its name cannot be that of a call, or the server does not start.
        MissingExtra: The package mcp is missing.

    >>> load_tools(["textwrap:dedent"], {"python"})["dedent"].call("  x")
    'x'
    """
    found: dict[str, UserTool] = {}
    for place in places:
        for name, tool in _of_server(place) if place.startswith(_MCP) else [_of_function(place)]:
            if not _NAME.fullmatch(name) or name in taken or name in found:
                raise ConfigError(
                    f"the tool {name} of {place} needs a unique name of lower-case letters, digits and _: rename it."
                )
            found[name] = tool
    return found


def _of_function(place: str) -> tuple[str, UserTool]:
    if ":" not in place:
        raise ConfigError(
            f"tools has python, functions path/to/file.py:function and servers mcp:COMMAND, got {place[:100]!r}."
        )
    function = load_object(place, _WANTED)
    name = place.rpartition(":")[2]
    require_call(function, f"the tool {place}", "one text")
    words = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    return name, UserTool(function, words or f"calls {name} with the text")


def _of_server(place: str) -> Iterator[tuple[str, UserTool]]:
    for tool in server_at(place.removeprefix(_MCP)).tools():
        yield re.sub(r"[^a-z0-9_]", "_", tool.name.lower()), _with_text(tool)


def _asked(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    async def ask() -> Any:
        return await asyncio.wait_for(tool.call(**arguments), _SECONDS)

    return asyncio.run(ask())


def _with_text(tool: Tool) -> UserTool:
    """Return a tool whose text is its only argument, if that is a text, or else the JSON of its arguments."""
    properties = _properties(tool)
    only = next(iter(properties)) if len(properties) == 1 else ""
    if only and properties[only].get("type") == "string":
        return UserTool(lambda text: _asked(tool, {only: text}), tool.description, tool.ready)

    def call(text: str) -> Any:
        arguments = json.loads(text)
        if problem := problem_with(arguments, tool.parameters):
            raise ValueError(problem)
        return _asked(tool, arguments)

    listed = ", ".join(f'"{name}": {about.get("type", "any")}' for name, about in properties.items())
    shown = harmless(cut(" ".join(listed.split()), _LONGEST_ARGUMENTS))
    return UserTool(call, f"{tool.description} The text is JSON: {{{shown}}}".strip(), tool.ready)


def _properties(tool: Tool) -> Mapping[str, Mapping[str, Any]]:
    """Return the schemas of the arguments by name.

    Raises:
        ConfigError: The server has sent something else.
    """
    found = tool.parameters.get("properties", {})
    if isinstance(found, Mapping) and all(isinstance(about, Mapping) for about in found.values()):
        return found
    raise ConfigError(
        f"the schema of the MCP tool {tool.name} needs properties, an object with a schema for each argument, got "
        f"{found!r:.80}."
    )
