"""Bounds on a request before any work: what is far longer than the model's context is refused unread."""

from __future__ import annotations

import json
from collections import Counter

from turngym.agents.gateway.conversations.messages import CallRequest
from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.gateway.refusal import TOO_LONG, Refusal

_UNKNOWN_CONTEXT = 2**20
_TEXT_PER_TOKEN = 16
"""Characters of texts for each token of the context: several times what tokenizers make of any language or code."""
_BYTES_PER_TOKEN = 128
"""Bytes of a body for each token: texts as escapes, and reasoning that the template leaves out."""
_VALUES_PER_TOKEN = 4
_MOST_VALUES = 500_000
_SMALLEST = 2**16
_ITEM_WEIGHT = 256


class RequestBounds:
    """Request limits for a model with a given context.

    Args:
        context: Longest sequence of the model; 0 if unknown.
        limits: Limits of the gateway.
    """

    def __init__(self, context: int, limits: GatewayLimits) -> None:
        known = context or _UNKNOWN_CONTEXT
        self.context = context
        self.items = limits.max_messages
        self.characters = _TEXT_PER_TOKEN * known
        self.bytes = _SMALLEST + _BYTES_PER_TOKEN * known
        self.values = min(_SMALLEST + _VALUES_PER_TOKEN * known, _MOST_VALUES)

    def check_size(self, size: int) -> None:
        """Raise if a body has more bytes than any prompt that fits.

        Raises:
            Refusal: It has.
        """
        if size > self.bytes:
            raise self._too_long(f"the request has more than {self.bytes} bytes")

    def check_body(self, raw: bytes) -> None:
        """Raise if a body has more values than any prompt that fits; what is in texts counts as well.

        Raises:
            Refusal: It has.
        """
        self.check_size(len(raw))
        values = sum(map(raw.count, (b",", b"[", b"{", b"\\u005b", b"\\u007b"))) if len(raw) > self.values else 0
        if values > self.values:
            raise self._too_long(f"the request has {values} commas and brackets, more than {self.values}")

    def check(self, request: CallRequest) -> int:
        """Return the weight of a request: about the characters that have to be rendered.

        Raises:
            Refusal: It is longer than any prompt that fits.
        """
        if request.prompt is not None:
            if len(request.prompt) > (self.characters if isinstance(request.prompt, str) else self.context or 2**62):
                raise self._too_long(f"the prompt has {len(request.prompt)} tokens or characters")
            return len(request.prompt)
        calls = [call for message in request.messages for call in message.calls]
        items = len(request.messages) + len(calls) + len(request.tools)
        if items > self.items:
            raise Refusal(400, f"a request has at most {self.items} messages, calls and tools, got {items}.")
        tools = len(json.dumps([dict(tool) for tool in request.tools])) if request.tools else 0
        texts = sum(len(message.text) for message in request.messages) + tools + len(request.json_mode)
        texts += sum(len(call.id) + len(call.name) + len(call.arguments) for call in calls)
        reasoning = [len(message.reasoning) for message in request.messages]
        if texts > self.characters or max(reasoning, default=0) > self.characters:
            raise self._too_long(f"the messages have {texts + sum(reasoning)} characters")
        return texts + sum(reasoning) + _ITEM_WEIGHT * items

    def _too_long(self, what: str) -> Refusal:
        limit = f"This model's maximum context length is {self.context} tokens, and " if self.context else ""
        return Refusal(400, f"{limit}{what}.", TOO_LONG)


class BytesUnderWay:
    """Bytes of bodies that are held, in all and of each client, until their requests are answered.

    Args:
        limits: Limits of the gateway.
    """

    def __init__(self, limits: GatewayLimits) -> None:
        self.limits = limits
        self._of: Counter[str] = Counter()
        self._total = 0

    def add(self, client: str, size: int) -> None:
        """Count bytes; :meth:`remove` has to be called for them, whether this raises or not.

        Raises:
            Refusal: There are too many.
        """
        self._of[client] += size
        self._total += size
        if self._of[client] > self.limits.max_bytes_each:
            raise Refusal(429, f"{self.limits.max_bytes_each} bytes of your requests are under way: wait for one.")
        if self._total > self.limits.max_bytes:
            raise Refusal(503, f"{self.limits.max_bytes} bytes of requests are under way: try again later.")

    def remove(self, client: str, size: int) -> None:
        """Count bytes no more."""
        self._of[client] -= size
        self._total -= size
        if not self._of[client]:
            del self._of[client]
