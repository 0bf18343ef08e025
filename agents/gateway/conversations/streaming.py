"""The part of a growing text that will not change any more, for streams."""

from __future__ import annotations

from collections.abc import Sequence


class StableText:
    r"""Returns what is new in a growing text.

    The end of a text is held back while it may be the first bytes of a character, or the start of a stop word.

    Args:
        words: Stop words.

    >>> text = StableText(["END"])
    >>> text.more("say E"), text.more("say EN\ufffd"), text.more("say ENo"), text.rest("say ENo!")
    ('say ', '', 'ENo', '!')
    """

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._words = tuple(words)
        self._sent = 0

    def more(self, text: str) -> str:
        """Return the new part of a text that is not finished."""
        places = [place for place in map(text.find, self._words) if place >= 0]
        end = min(places, default=len(text.rstrip("\ufffd")))
        end = min(end, *(self._begun(text[:end], word) for word in self._words)) if self._words else end
        return self._take(text, end)

    def rest(self, text: str) -> str:
        """Return the rest of the finished text."""
        return self._take(text, len(text))

    def _take(self, text: str, end: int) -> str:
        new = text[self._sent : end]
        self._sent = max(self._sent, end)
        return new

    @staticmethod
    def _begun(text: str, word: str) -> int:
        """Return where a word starts whose first part the text ends with."""
        for length in range(min(len(word) - 1, len(text)), 0, -1):
            if text.endswith(word[:length]):
                return len(text) - length
        return len(text)
