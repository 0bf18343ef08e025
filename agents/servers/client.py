"""Requests to a server that speaks the chat completions protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from turngym.agents.servers.exchange import CONTEXT, LARGEST_ANSWER, CallFailed, Exchange, is_too_long, retry_after

__all__ = ["CONTEXT", "CallFailed", "ChatServer", "is_too_long", "read_answer", "retry_after"]


class ChatServer(Exchange):
    """Sends conversations; safe to use from several threads.

    Args:
        address: Where the server is.
        key: Its key; empty sends none.
    """

    def ask(self, body: Mapping[str, Any], timeout: float) -> tuple[str, tuple[int, int] | None]:
        """Send one request and return the completion and the numbers of tokens read and written.

        Args:
            body: The request.
            timeout: Seconds until the whole answer must have arrived.

        Raises:
            CallFailed: There was no usable answer.
        """
        text, tokens = read_answer(self.send("POST", self.address.path, json.dumps(body).encode(), timeout))
        return self.hidden(text), tokens

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


def read_answer(content: bytes) -> tuple[str, tuple[int, int] | None]:
    """Return the completion in an answer, and the numbers of tokens read and written if reported.

    Raises:
        CallFailed: The answer does not follow the protocol, or its completion is blank.

    >>> read_answer(b'{"choices": [{"message": {"content": "up"}}]}')
    ('up', None)
    """
    if len(content) > LARGEST_ANSWER:
        raise CallFailed("malformed", f"an answer of more than {LARGEST_ANSWER} bytes")
    try:
        answer = json.loads(content)
        tokens = _tokens(answer.get("usage"))
        text = answer["choices"][0]["message"].get("content")
    except (ValueError, RecursionError, AttributeError, KeyError, IndexError, TypeError) as error:
        if content.lstrip().startswith(b'{"error"') and is_too_long(content):  # errors of some gateways have status 200
            raise CallFailed(CONTEXT, content[:300].decode("utf8", "replace"), is_retried=False) from error
        raise CallFailed("malformed", content[:300].decode("utf8", "replace")) from error
    if isinstance(text, list):  # some servers send a list of parts
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
    if text is not None and not isinstance(text, str):
        raise CallFailed("malformed", f"a completion that is no text: {text!r:.200}", tokens=tokens)
    if not text or text.isspace():
        raise CallFailed("empty", "a blank completion", tokens=tokens)
    return text, tokens


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(read) is not int or type(written) is not int or read < 0 or written < 0:
        return None
    return read, written
