"""Acts as text: the notation of agents, native tool calls, and the lists that both are checked against."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from turngym.envs.parsing.calls import cut, harmless
from turngym.envs.parsing.json_text import objects
from turngym.envs.service.caller import MORE
from turngym.envs.service.conduct import TRANSFERS
from turngym.envs.service.domain import Act, Domain
from turngym.envs.service.script import HOLDER
from turngym.envs.tools.tool_schema import CALL_MARK, Tool, find_call, read_call
from turngym.errors import nearest

KINDS = ("ask", "tell", "propose", "refuse", "transfer", "bye", "call")
FORMAT = """ask SLOT               ask the caller for a detail
tell KEY=VALUE         tell the caller a fact
propose TOOL {...}     offer a change, with the arguments of its tool
refuse REASON          refuse what the caller wants
transfer REASON        pass the caller on, which ends the conversation
bye                    end the conversation
call TOOL {...}        call a tool"""
_LONGEST_PROBLEM, _LONGEST_VALUE = 300, 100
_ARGUMENTS = json.JSONEncoder(ensure_ascii=False)
_WORDS = re.compile(r"([a-z]+)(?: +([^|]*))?", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)


class Vocabulary:
    """What can be said at the desk of a domain.

    Args:
        domain: The domain.
    """

    def __init__(self, domain: Domain) -> None:
        slots = dict.fromkeys(slot for kind in domain.kinds.values() for slot in kind.slots)
        self.slots = tuple(dict.fromkeys([*domain.identity, HOLDER, *slots, domain.description, MORE]))
        self.keys = tuple(
            dict.fromkeys([*domain.customs, *(each.answer for each in domain.kinds.values() if each.answer)])
        )
        self.refusals, self.transfers = (*domain.refusals, HOLDER), TRANSFERS
        self.tools, self.writes = domain.tools, tuple(each.__name__ for each in domain.writes)
        self._closed: Mapping[str, tuple[str, ...]] = {
            "ask": self.slots,
            "tell": self.keys,
            "refuse": self.refusals,
            "transfer": self.transfers,
            "propose": self.writes,
            "call": tuple(self.tools),
        }
        self.speech = {each.name: each for each in self._speech()}
        closed = {kind: self._closed[kind] for kind in ("ask", "refuse", "transfer")}
        self.always = (*(f"{kind} {name}" for kind, names in closed.items() for name in names), "bye")
        self.native: Mapping[str, Tool] = {**self.speech, **self.tools}

    def _speech(self) -> list[Tool]:
        def one(name: str, key: str, description: str) -> Tool:
            return Tool(name, description, _object({key: {"enum": list(self._closed[name])}}), str)

        told = _object({"key": {"enum": list(self.keys)}, "value": {"type": ["string", "integer"]}})
        offer = _object({"tool": {"enum": list(self.writes)}, "arguments": {"type": "object"}})
        return [
            one("ask", "slot", "Ask the caller for a detail."),
            Tool("tell", "Tell the caller a fact.", told, str),
            Tool("propose", "Offer the caller a change, with the arguments of its tool.", offer, str),
            one("refuse", "reason", "Refuse what the caller wants."),
            one("transfer", "reason", "Pass the caller on, which ends the conversation."),
            Tool("bye", "End the conversation.", _object({}), str),
        ]

    def read(self, action: str) -> Act | str:
        """Return the act that an action states, or why it states none."""
        if action.startswith(CALL_MARK):
            return self._read_native(action)
        line = action.strip().partition("\n")[0]
        match = _WORDS.match(line)
        kind, rest = (match[1], (match[2] or "").strip()) if match else ("", "")
        if kind not in KINDS:
            return f"an action starts with one of {', '.join(KINDS)}"
        if kind == "bye":
            return Act(kind) if not rest else "bye stands alone"
        if kind in ("call", "propose"):
            return self._read_call(kind, line[len(kind) :].strip())
        name, _, value = rest.partition("=")
        if name not in self._closed[kind]:
            return f"{kind} {harmless(cut(name, 60))!r}: there is none. {nearest(name[:60], self._closed[kind])}"
        if kind != "tell":
            return Act(kind, name) if name == rest else f"{kind} takes one word"
        return _told(name, value.strip())

    def _read_call(self, kind: str, rest: str) -> Act | str:
        name, _, text = rest.partition(" ")
        if name not in self._closed[kind]:
            return f"{kind} {harmless(cut(name, 60))!r}: there is none. {nearest(name[:60], self._closed[kind])}"
        start, end, _ = next(objects(text, 1), (-1, -1, None))
        after = text[end:].strip()
        if start or (after and not after.startswith("|")):
            return f"write {kind} {name} and its arguments as one JSON object"
        found, arguments, problem = read_call(f'{{"name": "{name}", "arguments": {text[:end]}}}', self.tools)
        return _with_tool(kind, name, arguments) if found else _shown(problem)

    def _read_native(self, action: str) -> Act | str:
        found, arguments, problem = read_call(find_call(action) or "", self.native)
        if found is None:
            return _shown(problem)
        if found.name not in self.speech:
            return _with_tool("call", found.name, arguments)
        if found.name == "propose":
            return self._read_call("propose", f"{arguments['tool']} {json.dumps(arguments['arguments'])}")
        if found.name == "tell":
            return _told(arguments["key"], str(arguments["value"]))
        return Act(found.name, next(iter(arguments.values()), ""))


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _with_tool(kind: str, name: str, arguments: Mapping[str, Any]) -> Act | str:
    if any(isinstance(each, str) and len(each) > _LONGEST_VALUE for each in arguments.values()):
        return f"texts in arguments have at most {_LONGEST_VALUE} characters"
    return Act(kind, name, arguments)


def _told(key: str, value: str) -> Act | str:
    if not value or len(value) > _LONGEST_VALUE:
        return f"write tell KEY=VALUE, with a value of at most {_LONGEST_VALUE} characters"
    return Act("tell", key, {"value": int(value) if _NUMBER.fullmatch(value) else value})


def write(act: Act) -> str:
    """Return an act in the notation of agents.

    >>> write(Act("tell", "refund", {"value": 1290})), write(Act("call", "get_order", {"order": 12}))
    ('tell refund=1290', 'call get_order {"order": 12}')
    """
    if act.kind in ("call", "propose"):
        return f"{act.kind} {act.name} {_ARGUMENTS.encode(act.arguments)}"
    if act.kind == "tell":
        return f"tell {act.name}={act.arguments['value']}"
    return f"{act.kind} {act.name}".rstrip()


def _shown(problem: str) -> str:
    return harmless(cut(problem.removesuffix("."), _LONGEST_PROBLEM))


@lru_cache(maxsize=16)
def vocabulary(domain: Domain) -> Vocabulary:
    """Return the vocabulary of a domain, shared by all environments of this process."""
    return Vocabulary(domain)
