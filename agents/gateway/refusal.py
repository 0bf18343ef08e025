"""Refused requests: a status of HTTP, and a reason in the format of the protocol that was spoken."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Dialect: TypeAlias = Literal["chat", "completions", "responses", "messages"]
"""The endpoints: OpenAI's chat completions, completions and responses, and Anthropic's messages."""
Body: TypeAlias = dict[str, Any]

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
TOO_LONG = "context_length_exceeded"


class Refusal(Exception):
    """A request that is not answered.

    Args:
        status: Status of HTTP.
        message: Error and remedy.
        code: Word for programs, such as ``context_length_exceeded``.
    """

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code

    def body(self, dialect: Dialect) -> Body:
        """Return the answer in the error format of a protocol.

        >>> Refusal(404, "no such episode").body("messages")
        {'type': 'error', 'error': {'type': 'not_found_error', 'message': 'no such episode'}}
        """
        kind = _KINDS.get(self.status, "api_error")
        if dialect == "messages":
            return {"type": "error", "error": {"type": kind, "message": self.message}}
        return {"error": {"message": self.message, "type": kind, "param": None, "code": self.code or None}}


def wrong(message: str) -> Refusal:
    """Return the refusal of a request that is not understood."""
    return Refusal(400, message)
