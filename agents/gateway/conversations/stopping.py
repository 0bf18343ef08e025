"""Stop words: where they end an answer, in text and in tokens."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.gateway.conversations.rendering import Renderer


class StopWords:
    """Words that end an answer. The text ends before the word; the tokens end with the one that completes it.

    Args:
        words: The words, none of them empty.
        renderer: Decodes tokens.
    """

    def __init__(self, words: Sequence[str], renderer: Renderer) -> None:
        self.words = tuple(words)
        self._renderer = renderer

    def before(self, text: str) -> str:
        """Return the text before the first of the words."""
        places = [place for place in map(text.find, self.words) if place >= 0]
        return text[: min(places)] if places else text

    def ends_at(self, ids: Sequence[int]) -> int:
        """Return how many tokens an answer has up to the one that completes a word; 0 if it has none."""
        if not self._has_word(ids):
            return 0
        low, high = 1, len(ids)
        while low < high:
            middle = (low + high) // 2
            if self._has_word(ids[:middle]):
                high = middle
            else:
                low = middle + 1
        return low

    def _has_word(self, ids: Sequence[int]) -> bool:
        text = self._renderer.text_of(ids)
        return any(word in text for word in self.words)
