"""Formats in which chat templates write tool calls; a template's own is found by reading back what it writes."""

from __future__ import annotations

from turngym.agents.gateway.conversations.call_formats import json_calls, literal_calls, tag_calls
from turngym.agents.gateway.conversations.call_formats.base import CallFormat, Found, Reader, Tools

__all__ = ["FORMATS", "HERMES", "CallFormat", "Found", "Reader", "Tools"]

FORMATS: dict[str, CallFormat] = {
    each.name: each for each in (*json_calls.FORMATS, *tag_calls.FORMATS, *literal_calls.FORMATS)
}
"""All formats, by name."""
HERMES = FORMATS["hermes"]
"""JSON between ``<tool_call>`` marks: what models are taught whose template writes no calls."""
