"""Syntax of searches and answers, and display of passages.

Two forms: ``tags`` (``<search>words</search>``, ``<answer>text</answer>``, thoughts before them; Search-R1, Jin et al.
2025, arXiv 2503.09516) and ``json`` (``{"tool": "search", "query": "words"}``, ``{"tool": "answer", "text": ...}``).
"""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.parsing.calls import Call, Calls, harmless
from turngym.envs.search.documents import Hit

SEARCH, ANSWER = "search", "answer"
CALLS = Calls(
    {SEARCH: "query", ANSWER: "text"},
    {
        "tags": "write <search>words</search> to search or <answer>text</answer> to answer",
        "json": 'write {"tool": "search", "query": words} or {"tool": "answer", "text": answer}',
    },
)
write = CALLS.write


def read(text: str, form: str) -> Call:
    """Return the first search or answer in a text.

    >>> read("<think>who?</think><search> red wine </search>", "tags")
    Call(tool='search', content='red wine', problem='')
    >>> read('{"tool": "answer", "text": "Spain"}', "json").content
    'Spain'
    """
    found = CALLS.read(text, form)
    return found._replace(content=found.content.strip())


def show(hits: Sequence[Hit], most_words: int) -> str:
    """Return found passages as an agent reads them, each cut to so many words."""
    lines = []
    for number, hit in enumerate(hits, 1):
        text = harmless(" ".join(hit.document.text.split()[:most_words]))
        lines.append(f"Doc {number}(Title: {harmless(hit.document.title)}) {text}")
    return "<information>\n" + ("\n".join(lines) or "Nothing was found.") + "\n</information>"
