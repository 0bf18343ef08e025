"""Text from outside: what no encoding can hold is replaced, and what a chat template marks turns with."""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]")


def valid_text(text: str) -> str:
    r"""Return a text that UTF-8 can hold: every lone surrogate becomes U+FFFD.

    Tools, servers and files can hand over code points that are no characters; tokenizers and files refuse them.

    >>> valid_text("caf\u00e9"), valid_text("a\ud800b")
    ('café', 'a\ufffdb')
    """
    if text.isascii():
        return text
    return _SURROGATES.sub("\ufffd", text)
