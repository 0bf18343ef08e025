"""The protocols that a gateway speaks: requests to one form, and answers back."""

from __future__ import annotations

from turngym.agents.gateway.dialects.base import Protocol
from turngym.agents.gateway.dialects.chat import ChatProtocol
from turngym.agents.gateway.dialects.completions import CompletionsProtocol
from turngym.agents.gateway.dialects.messages import MessagesProtocol
from turngym.agents.gateway.dialects.responses import ResponsesProtocol

PROTOCOLS: dict[str, Protocol] = {
    "chat/completions": ChatProtocol(),
    "completions": CompletionsProtocol(),
    "responses": ResponsesProtocol(),
    "messages": MessagesProtocol(),
}
"""Path below ``/v1/`` -> protocol."""

__all__ = ["PROTOCOLS", "Protocol"]
