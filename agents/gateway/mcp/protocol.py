"""Answering the messages of MCP: JSON-RPC 2.0 with the methods that a server of tools needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import turngym
from turngym.text import valid_text

Message = dict[str, Any]
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol, the newest first."""
RESET, STEP, LEGAL = "reset", "step", "legal_actions"
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
_ACTION = {
    "type": "object",
    "properties": {"action": {"type": "string", "description": "The action, as the rules ask for it."}},
    "required": ["action"],
    "additionalProperties": False,
}
TOOLS: tuple[Message, ...] = (
    {
        "name": RESET,
        "description": "Begin an episode; returns the rules and the first observation.",
        "inputSchema": _NO_ARGUMENTS,
    },
    {"name": STEP, "description": "Take an action; returns what is seen then.", "inputSchema": _ACTION},
    {
        "name": LEGAL,
        "description": "Return the legal actions, one a line, where there is a list.",
        "inputSchema": _NO_ARGUMENTS,
    },
)
_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32600, -32601, -32602


class ToolError(Exception):
    """A call of a tool that fails; the message is for the model."""


class Tools(Protocol):
    """An environment behind the three tools."""

    async def reset(self) -> str:
        """Start an episode."""
        ...

    async def step(self, action: str) -> str:
        """Take an action."""
        ...

    async def legal_actions(self) -> tuple[str, ...]:
        """Return the legal actions."""
        ...


async def answered(message: object, tools: Tools) -> Message | None:
    """Return the answer to a message; None for a notification, which has none.

    Args:
        message: The message.
        tools: Function to call.
    """
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return failure(None, _INVALID_REQUEST, "a message is an object of JSON-RPC 2.0 with a method.")
    if "id" not in message:
        return None
    id = message["id"]
    if isinstance(id, bool) or not isinstance(id, str | int):
        return failure(None, _INVALID_REQUEST, "the id of a request must be a string or a whole number.")
    params = message.get("params") or {}
    if not isinstance(params, dict):
        return failure(id, _INVALID_PARAMS, "params must be an object.")
    method = message["method"]
    if method == "initialize":
        return _result(id, _introduction(params))
    if method == "ping":
        return _result(id, {})
    if method == "tools/list":
        return _result(id, {"tools": list(TOOLS)})
    if method == "tools/call":
        return await _called(id, params, tools)
    return failure(id, _NO_METHOD, f"there is no method {method[:100]!r}.")


def failure(id: object, code: int, text: str) -> Message:
    """Return an error of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}


def seen(observation: str, is_done: bool) -> str:
    """Return an observation, with a line after it if the episode is over."""
    return f"{observation}\n\nThe episode is over." if is_done else observation


def _result(id: object, content: Mapping[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": dict(content)}


def _introduction(params: Mapping[str, Any]) -> Message:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "turngym", "version": turngym.__version__},
        "instructions": f"Call {RESET} to read the rules and to begin, then {STEP} until the episode is over.",
    }


async def _called(id: object, params: Mapping[str, Any], tools: Tools) -> Message:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if name not in (RESET, STEP, LEGAL):
        return failure(id, _INVALID_PARAMS, f"there is no tool {str(name)[:100]!r}.")
    if not isinstance(arguments, dict):
        return failure(id, _INVALID_PARAMS, "the arguments of a tool are an object.")
    try:
        text, is_error = await _text(str(name), arguments, tools), False
    except ToolError as error:
        text, is_error = str(error), True
    return _result(id, {"content": [{"type": "text", "text": valid_text(text)}], "isError": is_error})


async def _text(name: str, arguments: Mapping[str, Any], tools: Tools) -> str:
    if name == RESET:
        return await tools.reset()
    if name == LEGAL:
        return "\n".join(await tools.legal_actions()) or "There is no list of legal actions: read the rules."
    action = arguments.get("action")
    if not isinstance(action, str):
        raise ToolError('step takes {"action": TEXT}.')
    return await tools.step(valid_text(action))
