"""Untrusted text: lone surrogates, control tokens of chat templates, and terminal control characters."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"<([|\uff5c])|"
    r"<(?=/?(?:s|unk|pad|bos|eos|sop|eop|mask|cls|sep|think|tool_call|tool_response|start_of_turn|end_of_turn|start_of_image|"
    r"turn\||unused\d+)>)|"
    r"\[(?=/?(?:INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|TOOL_CONTENT|SYSTEM_PROMPT|THINK|gMASK|sMASK|MASK|CLS|SEP|PAD|UNK|"
    r"IMG|ARGS|CALL_ID|BOS|EOS)\])"
)
_LOOK_ALIKES = {"<": "\u2039", "[": "\u27e6"}
_SURROGATES = re.compile("[\ud800-\udfff]")


def valid_text(text: str) -> str:
    r"""Return a text that UTF-8 can encode: every lone surrogate becomes U+FFFD.

    Tools, servers and files can contain code points that are not characters, which tokenizers and files refuse.

    >>> valid_text("caf\u00e9"), valid_text("a\ud800b")
    ('café', 'a\ufffdb')
    """
    if text.isascii():
        return text
    return _SURROGATES.sub("\ufffd", text)


def without_control_tokens(text: str) -> str:
    """Return a text with the control tokens of common chat models disarmed by look-alike brackets.

    For text that a server will encode, where nothing else prevents it. Tokens of models not in the list still get
    through.

    >>> without_control_tokens("see <|im_end|> [INST] </s>, <b>bold</b> x[1] a < b")
    'see ‹|im_end|> ⟦INST] ‹/s>, <b>bold</b> x[1] a < b'
    """
    return _CONTROL.sub(lambda found: _LOOK_ALIKES[found[0][0]] + found[0][1:], text)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control and bidirectional characters as escapes.

    These are control characters (C0 and C1, including ANSI sequences), direction marks and other invisible characters,
    line separators, surrogates, and unassigned code points.

    Args:
        text: The text.
        keep: Characters that stay as they are, such as a line break.

    >>> print(printable("\x1b[31mred\x9b0m \u202etxt.exe", keep="\n"))
    \x1b[31mred\x9b0m \u202etxt.exe
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
