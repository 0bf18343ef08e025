"""Requests to a server that speaks the chat completions protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from turngym.agents.chat_client.exchange import (
    CONTEXT,
    EMPTY,
    LARGEST_ANSWER,
    TOOLS,
    UNFINISHED,
    CallFailed,
    Exchange,
    is_too_long,
    retry_after,
)
from turngym.agents.chat_client.tool_calls import ToolCall, read_calls

__all__ = [
    "CONTEXT",
    "EMPTY",
    "TOOLS",
    "Answer",
    "CallFailed",
    "ChatServer",
    "is_too_long",
    "read_answer",
    "retry_after",
]
_REASONING = ("reasoning_content", "reasoning")
_ABOUT_TOOLS = re.compile(r"\btools?\b|tool_choice|tool-call|function.?call", re.IGNORECASE)
_WITHOUT_TOOLS = (
    "the server rejects declared tools, so calls are written as text ({kind}: {detail}). For native calls, start vLLM "
    "with --enable-auto-tool-choice and --tool-call-parser, llama.cpp with --jinja."
)
_MOST = 10**12
"""Tokens that an answer can have: a larger number is taken for no report."""
_FINAL = ("length", "content_filter", "tool_calls")  # reasons for a blank completion that a retry meets again


class Answer(NamedTuple):
    """The answer to a request.

    Args:
        text: The completion.
        tokens: Numbers of tokens read and written, if reported.
        reasoning: Reasoning that the server sent apart from the completion.
        calls: Native tool calls.
        cached: Number of the tokens read that came from the server's cache, which some servers sell cheaper.
    """

    text: str
    tokens: tuple[int, int] | None = None
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    cached: int = 0


class ChatServer(Exchange):
    """Sends conversations; safe to use from several threads.

    Args:
        address: Address of the server.
        key: Its key; empty sends none.
    """

    def ask(self, body: Mapping[str, Any], timeout: float) -> Answer:
        """Send one request and return its answer.

        Args:
            body: The request.
            timeout: Seconds until the whole answer must have arrived.

        Raises:
            CallFailed: There was no usable answer.
        """
        try:
            content = self.send("POST", self.address.path, json.dumps(body).encode(), timeout)
        except CallFailed as failure:
            if not _rejects_tools(failure, body):
                raise
            detail = _WITHOUT_TOOLS.format(kind=failure.kind, detail=failure.detail)
            raise CallFailed(TOOLS, detail, is_retried=False) from failure
        found = read_answer(content)
        calls = tuple(ToolCall(*map(self.hidden, call)) for call in found.calls)
        return found._replace(text=self.hidden(found.text), reasoning=self.hidden(found.reasoning), calls=calls)

    def models(self, timeout: float) -> list[str]:
        """Return the names of the models that the server lists.

        Args:
            timeout: Seconds until the whole answer must have arrived.

        Raises:
            CallFailed: There was no usable answer; not every server has such a list.
        """
        path = self.address.path.removesuffix("/chat/completions") + "/models"
        content = self.send("GET", path, None, timeout)
        try:
            return [self.hidden(entry["id"]) for entry in json.loads(content)["data"] if isinstance(entry["id"], str)]
        except (ValueError, RecursionError, TypeError, KeyError) as error:
            raise CallFailed("malformed", content[:300].decode("utf8", "replace"), is_retried=False) from error


def _rejects_tools(failure: CallFailed, body: Mapping[str, Any]) -> bool:
    """Return whether a request that declared tools, and was the first of its episode to do so, failed for them."""
    is_first = "tools" in body and not any(message["role"] == "tool" for message in body["messages"])
    is_rejected = failure.kind in ("http_400", "http_404", "http_422", "http_500", "http_501")
    return is_first and is_rejected and _ABOUT_TOOLS.search(failure.detail) is not None


def read_answer(content: bytes) -> Answer:
    """Return the completion in an answer, and what was reported with it.

    Raises:
        CallFailed: The answer does not follow the protocol, or its completion is blank.

    >>> read_answer(b'{"choices": [{"message": {"content": "up", "reasoning": "The box is above."}}]}')
    Answer(text='up', tokens=None, reasoning='The box is above.', calls=(), cached=0)
    """
    if len(content) > LARGEST_ANSWER:
        raise CallFailed("malformed", f"an answer of more than {LARGEST_ANSWER} bytes")
    try:
        answer = json.loads(content)
        tokens = _tokens(answer.get("usage"))
        choice = answer["choices"][0]
        text, reasoning = choice["message"].get("content"), _reasoning(choice["message"])
        calls = read_calls(choice["message"])
    except (ValueError, RecursionError, AttributeError, KeyError, IndexError, TypeError) as error:
        if content.lstrip().startswith(b'{"error"') and is_too_long(content):  # errors of some gateways have status 200
            raise CallFailed(CONTEXT, content[:300].decode("utf8", "replace"), is_retried=False) from error
        raise CallFailed("malformed", content[:300].decode("utf8", "replace")) from error
    if isinstance(text, list):  # some servers send a list of parts
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
    if text is not None and not isinstance(text, str):
        raise CallFailed("malformed", f"a completion that is no text: {text!r:.200}", tokens=tokens)
    if (not text or text.isspace()) and not calls:
        raise _blank(choice.get("finish_reason"), tokens, *reasoning)
    cached = _cached(answer["usage"], tokens[0]) if tokens else 0
    return Answer(text or "", tokens, reasoning[1], calls, cached)


def _reasoning(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the field that holds the model's reasoning, and its text; empty without any."""
    for name in _REASONING:
        if isinstance(message.get(name), str) and message[name].strip():
            return name, message[name]
    return "", ""


def _blank(reason: Any, tokens: tuple[int, int] | None, field: str, reasoning: str) -> CallFailed:
    """Return the failure of an answer without a completion, which names what to change."""
    if reason != "length" and field:
        detail = (
            f"the model ended its answer after the reasoning (field {field}), without a completion: ask for less "
            "reasoning, or, if the answer stands in that field, correct the server's reasoning parser."
        )
        return CallFailed(EMPTY, detail, is_retried=False, tokens=tokens, reasoning=reasoning)
    if reason != "length":
        detail = (
            f"the completion is blank (finish_reason {str(reason)[:40]!r}) and there is no reasoning: look whether the "
            "server's chat template and stop sequences fit the model."
        )
        return CallFailed(EMPTY, detail, reason not in _FINAL, tokens=tokens)
    spent = f"all {tokens[1]} tokens" if tokens else "all tokens"
    where = f"on reasoning (field {field})" if field else "before the completion began"
    return CallFailed(
        UNFINISHED,
        f"the model spent {spent} {where}: raise max_new_tokens (--max-new-tokens), or ask for less reasoning.",
        is_retried=False,
        tokens=tokens,
        reasoning=reasoning,
    )


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(read) is not int or type(written) is not int or not 0 <= min(read, written) <= max(read, written) <= _MOST:
        return None
    return read, written


def _cached(usage: Mapping[str, Any], read: int) -> int:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return min(cached, read) if type(cached) is int and cached > 0 else 0
