"""A console of rich on which no text of others is obeyed by the terminal."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.text import Text

from turngym.text import printable


class Console(rich.console.Console):
    """Prints texts with control characters as escapes, those in cells of tables too; lines and tabs stay.

    Codes of emojis, such as the last part of ``game.py:Star:``, are printed as they are.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with its markup, and without what a terminal would obey."""
        return super().render_str(printable(text, keep="\n\t"), **options)
