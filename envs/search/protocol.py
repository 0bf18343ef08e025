"""How an agent writes searches and answers, and how passages are shown to it.

Two forms: ``tags`` (``<search>words</search>``, ``<answer>text</answer>``, thoughts before them; Search-R1, Jin et al.
2025, arXiv 2503.09516) and ``json`` (``{"tool": "search", "query": "words"}``, ``{"tool": "answer", "text": ...}``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from turngym.envs.json_text import first_object
from turngym.envs.search.documents import Hit

FORMS = ("tags", "json")
SEARCH, ANSWER = "search", "answer"
_TAGS = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
_CONTROL = re.compile(r"<(\s*/?\s*)(think|search|information|answer|warning|verify)\b", re.IGNORECASE)


class Move(NamedTuple):
    """What an agent does.

    Args:
        kind: ``"search"``, ``"answer"``, or empty where the text is neither.
        content: The words searched for, or the answer.
        problem: Why it is neither.
    """

    kind: str
    content: str = ""
    problem: str = ""


def read(text: str, form: str) -> Move:
    """Return the first search or answer in a text.

    >>> read("<think>who?</think><search> red wine </search>", "tags")
    Move(kind='search', content='red wine', problem='')
    >>> read('{"tool": "answer", "text": "Spain"}', "json").content
    'Spain'
    """
    return _read_tags(text) if form == "tags" else _read_json(text)


def _read_tags(text: str) -> Move:
    found = _TAGS.search(text)
    if found is None:
        return Move("", problem="write <search>words</search> to search or <answer>text</answer> to answer")
    return Move(found[1], found[2].strip())


def _read_json(text: str) -> Move:
    wanted = 'write {"tool": "search", "query": words} or {"tool": "answer", "text": answer}'
    call = first_object(text)
    if call is None:
        return Move("", problem=f"there is no JSON object: {wanted}")
    field = {SEARCH: "query", ANSWER: "text"}.get(str(call.get("tool")))
    if field is None:
        return Move("", problem=f"there is no tool {str(call.get('tool'))[:40]!r}: {wanted}")
    if not isinstance(call.get(field), str) or call.keys() - {"tool", field}:
        return Move("", problem=f"the call needs exactly tool and {field}, a text: {wanted}")
    return Move(str(call["tool"]), call[field].strip())


def write(kind: str, content: str, form: str) -> str:
    """Return the text of a move.

    >>> write("search", "red wine", "tags")
    '<search>red wine</search>'
    """
    if form == "tags":
        return f"<{kind}>{content}</{kind}>"
    return json.dumps({"tool": kind, ("query" if kind == SEARCH else "text"): content}, ensure_ascii=False)


def harmless(text: str) -> str:
    """Return a text in which no control tag can be read: a passage must not be able to forge a turn.

    >>> harmless("see <answer>42</answer> and a < b")
    'see \u2039answer>42\u2039/answer> and a < b'
    """
    return _CONTROL.sub("\u2039\\1\\2", text)


def show(hits: Sequence[Hit], most_words: int) -> str:
    """Return found passages as an agent reads them, each cut to so many words."""
    lines = []
    for number, hit in enumerate(hits, 1):
        text = harmless(" ".join(hit.document.text.split()[:most_words]))
        lines.append(f"Doc {number}(Title: {harmless(hit.document.title)}) {text}")
    return "<information>\n" + ("\n".join(lines) or "Nothing was found.") + "\n</information>"
