"""Dialects: names of functions and parameters in an instance, the documentation, and reading and writing of calls."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from turngym.envs.apps.effects import as_json
from turngym.envs.apps.functions import APPS, FUNCTIONS, PARAMETERS, Function
from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.parsing.json_text import objects
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, find_call, read_call
from turngym.envs.website.draw import Dice
from turngym.seeding import restart

DOCS, CALL, SUBMIT = "docs", "call", "submit"
FORMAT = """docs                   list the apps
docs APP               list the functions of an app with their parameters; ? marks those that may be left out
call FUNCTION {...}    call a function, with its arguments as JSON
submit                 end the episode when all is done"""
DIALECTS = 24
_WORDS: Mapping[str, tuple[str, ...]] = {
    "list": ("list", "browse", "get_all"),
    "search": ("search", "find", "look_up"),
    "show": ("show", "read", "get"),
    "create": ("create", "new", "make"),
    "delete": ("delete", "discard", "erase"),
    "move": ("move", "put", "shift"),
    "send": ("send", "deliver", "issue"),
    "write": ("write", "replace", "overwrite"),
    "add": ("add", "include", "attach"),
    "remove": ("remove", "exclude", "detach"),
    "set": ("set", "change", "update"),
    "accept": ("accept", "approve", "settle"),
    "decline": ("decline", "reject", "refuse"),
    "share": ("share", "grant", "open_to"),
    "query": ("query", "words", "pattern"),
    "page": ("page", "part", "sheet"),
    "text": ("text", "body", "content"),
    "to": ("to", "receiver", "recipient"),
    "folder": ("folder", "directory", "box"),
    "cents": ("cents", "amount", "sum"),
    "title": ("title", "heading", "caption"),
    "key": ("key", "token", "access"),
    "start": ("start", "begin", "at"),
    "day": ("day", "date", "on"),
}
"""Part of a name -> what it may be called."""
_SORTED = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
_LONGEST_PROBLEM, _LONGEST_VALUE = 300, 1000


class Act(NamedTuple):
    """Action of an agent.

    Args:
        kind: ``docs``, ``call`` or ``submit``.
        name: App or function, by its name in ``functions``.
        arguments: Arguments, by the names of ``functions``.
    """

    kind: str
    name: str = ""
    arguments: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """The same text for the same act."""
        return f"{self.kind} {self.name} {_SORTED(self.arguments)}"


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_APP = {"app": {"type": "string", "description": "an app; left out for the list of apps"}}
_CALLED = {"function": {"type": "string"}, "arguments": {"type": "object"}}
LOOKED_UP = {
    DOCS: Tool(DOCS, "List the apps, or the functions of an app.", _object(_APP, []), str),
    CALL: Tool(CALL, "Call a function of an app.", _object(_CALLED, list(_CALLED)), str),
    SUBMIT: Tool(SUBMIT, "End the episode when all is done.", _object({}, []), str),
}
"""Tools of agents that look functions up."""


class Dialect:
    """Names of all functions and parameters.

    Args:
        number: Which one; in 0 the names are those of ``functions``.
    """

    def __init__(self, number: int) -> None:
        dice = Dice(restart(np.random.default_rng(0), "names of apps", number))
        self._words = {word: others[dice.whole(0, len(others) - 1) if number else 0] for word, others in _WORDS.items()}
        self.names = {each.name: self._name_of(each) for each in FUNCTIONS.values()}
        self._functions = {self.names[each.name]: each for each in FUNCTIONS.values()}
        self.tools = {self.names[each.name]: self._tool(each) for each in FUNCTIONS.values()}
        self.docs = {app: self._page(app) for app in APPS}
        self._natives = {**LOOKED_UP, **self.tools}

    def _name_of(self, function: Function) -> str:
        return "_".join([function.app, *(self._words.get(each, each) for each in function.verb.split("_"))])

    def _called(self, parameter: str) -> str:
        return self._words.get(parameter, parameter)

    def _tool(self, function: Function) -> Tool:
        parameters = function.parameters if function.app == "accounts" else ("key", *function.parameters)
        properties, required = dict[str, Any](), list[str]()
        for each in parameters:
            name = each.removesuffix("?")
            schema, meaning = PARAMETERS[name]
            properties[self._called(name)] = {**schema, "description": meaning}
            if name == each:
                required.append(self._called(name))
        return Tool(self.names[function.name], function.text, _object(properties, required), str)

    def _page(self, app: str) -> str:
        return "\n".join(
            f"{name}({', '.join(_signature(tool))}): {tool.description}"
            for name, tool in self.tools.items()
            if self._functions[name].app == app
        )

    def page(self, app: str) -> str:
        """Return the documentation of an app, or the list of apps."""
        if not app:
            return "\n".join(f"{name}: {text}" for name, text in APPS.items())
        return f"{APPS[app]}\n{self.docs[app]}"

    def read(self, action: str) -> Act | str:
        """Return the act that an action states, or why it states none."""
        if action.startswith(CALL_MARK):
            found, arguments, problem = read_call(find_call(action) or "", self._natives)
            if found is None:
                return _short(problem)
            if found.name not in LOOKED_UP:
                return self._act(found.name, arguments)
            if found.name == CALL:
                return self._read_call(f"{arguments['function']} {json.dumps(arguments['arguments'])}")
            return _simple(found.name, str(arguments.get("app", "")))
        kind, _, rest = action.strip().partition("\n")[0].partition(" ")
        if kind == CALL:
            return self._read_call(action.strip()[len(CALL) :].strip())
        return _simple(kind, rest.strip())

    def _read_call(self, text: str) -> Act | str:
        name = text.partition("{")[0].strip()
        rest = text[len(name) :].strip()
        if name not in self.tools:
            close = difflib.get_close_matches(name[:60], self.tools, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]!r}?" if close else f"{DOCS} APP lists the functions of an app"
            return f"there is no function {harmless(cut(name, 60))!r}. {hint}"
        start, end, _ = next(objects(rest, 1), (-1, -1, None))
        if start or rest[end:].strip():
            return f"write call {name} and its arguments as one JSON object"
        found, arguments, problem = read_call(f'{{"name": "{name}", "arguments": {rest}}}', self.tools)
        if found is None and "not closed" in problem:  # a number or depth that JSON does not have
            return f"the arguments of call {name} are no JSON object"
        return self._act(name, arguments) if found else _short(problem)

    def _act(self, name: str, arguments: Mapping[str, Any]) -> Act | str:
        if any(isinstance(each, str) and len(each) > _LONGEST_VALUE for each in arguments.values()):
            return f"texts in arguments have at most {_LONGEST_VALUE} characters"
        function = self._functions[name]
        known = {self._called(each.removesuffix("?")): each.removesuffix("?") for each in ("key", *function.parameters)}
        return Act(CALL, function.name, {known[each]: value for each, value in arguments.items()})

    def write(self, act: Act) -> str:
        """Return an act in the notation of agents.

        >>> dialect(0).write(Act("call", "mail_show", {"key": "mail-1", "mail": 7}))
        'call mail_show {"key": "mail-1", "mail": 7}'
        """
        if act.kind != CALL:
            return f"{act.kind} {act.name}".rstrip()
        arguments = {self._called(name): value for name, value in act.arguments.items()}
        return f"{CALL} {self.names[act.name]} {as_json(arguments)}"


def _signature(tool: Tool) -> list[str]:
    required = tool.parameters["required"]
    return [name if name in required else f"{name}?" for name in tool.parameters["properties"]]


def _simple(kind: str, rest: str) -> Act | str:
    if kind == DOCS:
        return Act(DOCS, rest) if not rest or rest in APPS else f"there is no app {harmless(cut(rest, 60))!r}"
    if kind == SUBMIT and not rest:
        return Act(SUBMIT)
    return f"write {DOCS}, {DOCS} APP, {CALL} FUNCTION {{...}} or {SUBMIT}"


def _short(problem: str) -> str:
    return harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM))


@lru_cache(maxsize=DIALECTS)
def dialect(number: int) -> Dialect:
    """Return a dialect, shared by all environments of this process."""
    return Dialect(number)
