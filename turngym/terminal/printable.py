"""Untrusted text on a terminal: control sequences are shown, not obeyed."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control and bidirectional characters as escapes.

    Those are control characters (C0 and C1, so ANSI sequences too), marks of direction and other invisible ones,
    separators of lines, surrogates, and what Unicode has not assigned.

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
