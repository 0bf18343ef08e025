"""MCP over standard input and output: one message a line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any, TextIO

from turngym.agents.gateway.mcp.protocol import answered, failure
from turngym.agents.gateway.mcp.session import EnvSession

_PARSE_ERROR = -32700


def serve_stdio(session: EnvSession, lines: TextIO, answers: TextIO) -> None:
    """Answer the messages of a client until its end; what the environment prints goes to standard error.

    Args:
        session: The environment; it is closed at the end.
        lines: Input of the client.
        answers: Output for the client.
    """
    with asyncio.Runner() as runner, contextlib.redirect_stdout(sys.stderr):
        try:
            for line in lines:
                if not line.strip():
                    continue
                message = _read(line)
                if message is None:
                    answer: Any = failure(None, _PARSE_ERROR, "a line is no JSON.")
                else:
                    answer = runner.run(answered(message, session))
                if answer is not None:
                    answers.write(json.dumps(answer) + "\n")
                    answers.flush()
        finally:
            runner.run(session.close())


def _read(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
