"""Encoding texts so that none of them can become a control token of the model.

A tokenizer turns the text of a control token, such as ``<|im_end|>``, into that token everywhere. In what a chat
template writes that is intended; in an observation it would let a web page or a tool end a turn and begin another one.
So every occurrence in a content is replaced by a mark before the template is rendered, and encoded afterwards in parts
that do not form the token. Other contents are encoded as usual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

from transformers import PreTrainedTokenizerBase

from turngym.text import valid_text

Render: TypeAlias = Callable[[Sequence[str]], str]
"""Contents to the text of a whole conversation."""
Trust: TypeAlias = Literal["none", "marks"]
"""Control tokens allowed in a content: none, or those that are not special tokens, such as ``<think>``."""
_STRICTER = (re.compile(r"[^\w\s]"), re.compile(r".", re.DOTALL))
"""Split rule for tokenizers whose normaliser turns other texts into control tokens: punctuation, then everything."""
_REPLACEMENT = "\ufffd"


class TextEncoder:
    """Encodes texts with a tokenizer. Control tokens are all tokens that were added to it, runs of spaces apart.

    Args:
        tokenizer: Fast or slow.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        added = {i: token for i, token in tokenizer.added_tokens_decoder.items() if not _is_space(str(token.content))}
        special = {str(token.content) for token in added.values() if token.special}
        special.update(str(text) for text in tokenizer.all_special_tokens if not _is_space(str(text)))
        marks = {str(token.content) for token in added.values()} - special
        self._control = {"none": any_of(special | marks), "marks": any_of(special)}
        self._control_ids = frozenset(added) - {tokenizer.unk_token_id}  # also used for unknown characters
        self._anchor = next((each for each in sorted(special) if self._is_anchor(each)), "")
        self._plain_ids = cache(self._find_plain_ids)

    def encode(self, contents: Sequence[tuple[str, Trust]], render: Render, begins: bool = True) -> tuple[int, ...]:
        """Return the ids of a conversation.

        Args:
            contents: Each text and the control tokens it may contain.
            render: Puts the contents, in this order, into the template.
            begins: Whether the rendered text is the start of a sequence; False if it follows other tokens.
        """
        texts = [valid_text(text) for text, _ in contents]
        patterns = [self._control[trust] for _, trust in contents]
        ids, wanted = self._encode_marked(texts, patterns, render, begins)
        if self._count(ids) == wanted:
            return ids
        neutral = [
            text if trust == "marks" else "-" * bool(text.strip())
            for text, (_, trust) in zip(texts, contents, strict=True)
        ]
        wanted = self._count(self._encode_marked(neutral, patterns, render, begins)[0])
        for stricter in _STRICTER:
            if self._count(ids) == wanted:
                break
            patterns = [stricter if trust == "none" else self._control[trust] for _, trust in contents]
            ids, _ = self._encode_marked(texts, patterns, render, begins)
        return ids

    def encode_one(self, text: str, trust: Trust = "none") -> tuple[int, ...]:
        """Return the ids of a text on its own."""
        return self.encode([(text, trust)], lambda contents: contents[0])

    def encode_template(self, text: str, begins: bool = False) -> tuple[int, ...]:
        """Return the ids of a text of the template itself, in which control tokens are intended."""
        return self._ids(text) if begins else self._ids_after(text)

    def is_control(self, token: int) -> bool:
        """Return whether a token was added to the tokenizer for other purposes than to encode texts."""
        return token in self._control_ids

    def _encode_marked(
        self, texts: Sequence[str], patterns: Sequence[re.Pattern[str]], render: Render, begins: bool
    ) -> tuple[tuple[int, ...], int]:
        """Return the ids, and the number of control tokens in the rendered text outside the marks."""
        mark = _unused_mark(texts)
        found: list[str] = []

        def placeholder(match: re.Match[str]) -> str:
            found.append(match[0])
            return f"{mark}{len(found) - 1};"

        rendered = render([pattern.sub(placeholder, text) for pattern, text in zip(patterns, texts, strict=True)])
        if not found:
            return self.encode_template(rendered, begins), len(self._control["none"].findall(rendered))
        first, *rest = re.split(f"{re.escape(mark)}(\\d+);", rendered)
        ids, written = [*self.encode_template(first, begins)], len(self._control["none"].findall(first))
        known: dict[str, tuple[int, ...]] = {}  # a text of many marks repeats what stands between them
        for index, segment in zip(rest[::2], rest[1::2], strict=True):
            if segment not in known:
                known[segment] = self._ids_after(segment)
            ids += self._plain_ids(found[int(index)])
            ids += known[segment]
            written += len(self._control["none"].findall(segment))
        return tuple(ids), written

    def _ids(self, text: str) -> tuple[int, ...]:
        encoded: Any = self.tokenizer.encode(text, add_special_tokens=False)
        return tuple(encoded)

    def _ids_after(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text in the middle of another: some tokenizers put a space before the first word."""
        return self._ids(self._anchor + text)[bool(self._anchor) :] if text else ()

    def _is_anchor(self, token: str) -> bool:
        alone, followed = self._ids(token), self._ids(f"{token} a")
        return len(alone) == 1 and followed[:1] == alone and len(followed) > 1

    def _find_plain_ids(self, text: str) -> tuple[int, ...]:
        """Return ids of a control token's text that do not contain the token: those of its parts."""
        for cut in range(1, len(text)):
            ids = self._ids_after(text[:cut]) + self._ids_after(text[cut:])
            if not self._count(ids):
                return ids
        parts = [self._ids_after(character) for character in text]
        other = self._ids_after(_REPLACEMENT)
        other = () if self._count(other) else other
        return tuple(i for part in parts for i in (other if self._count(part) else part))

    def _count(self, ids: Sequence[int]) -> int:
        return 0 if self._control_ids.isdisjoint(ids) else sum(i in self._control_ids for i in ids)


def _is_space(text: str) -> bool:
    return not text.replace("\u2581", " ").strip()


def _unused_mark(texts: Sequence[str]) -> str:
    """Return a text that occurs in none of the texts."""
    mark = "\ue000\ue001"
    while any(mark in text for text in texts):
        mark += "\ue001"
    return mark


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the longest of some texts at every position, for any number of texts.

    >>> any_of(["<s>", "<sop>", "<s"]).findall("<sop> <s <so <s>")
    ['<sop>', '<s', '<s', '<s>']
    """
    trie: dict[str, Any] = {}
    for text in texts:
        node = trie
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}
    return re.compile(_written(trie) if trie else "(?!)")


def _written(node: dict[str, Any]) -> str:
    """Return the pattern of the continuations of a node, longest first."""
    ways = [re.escape(character) + _written(after) for character, after in node.items() if character]
    if not ways:
        return ""
    together = ways[0] if len(ways) == 1 and "" not in node else f"(?:{'|'.join(ways)})"
    return f"{together}?" if "" in node else together
