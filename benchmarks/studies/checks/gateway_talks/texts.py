"""Generated agents that continue texts: completions without messages, as programs of the ReAct kind write them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from turngym.benchmarks.studies.checks.gateway_talks.protocols import events_of

Body = dict[str, Any]
Send = Callable[[Body, dict[str, str]], bytes]
"""Body and further headers of a completion to the content of the answer."""
_SEEN = ("a wall", "wo bin ich? 🙂", "", "<|end|>hm", "\ud83d lone", "日本", "x" * 60)
_LONGEST = 4


class TextAgent:
    """An agent whose history is one text.

    Args:
        name: Its name, with which its texts begin.
        draw: Random numbers.
        send: Sends a completion.
        counts: What is counted.
    """

    def __init__(self, name: str, draw: random.Random, send: Send, counts: Counter[str]) -> None:
        self.expected: dict[str, str] = {}
        """Id of an answer -> how its prompt must have come about."""
        self.edited: dict[str, str] = {}
        """Id of an answer -> that of the answer in its history that was edited."""
        self._draw, self._send, self._counts = draw, send, counts
        self._begin = f"# {name} {draw.random()}\n"
        self._answered: list[str] = []
        """Texts that end with an answer as it was returned."""

    def run(self) -> None:
        """Play some turns."""
        text, edited = f"{self._begin}You move. Thought: ", ""
        for _ in range(self._draw.randint(1, _LONGEST)):
            id, answer = self._ask(text, edited)
            text, edited = self._next(text, answer, id)

    def _ask(self, text: str, edited: str) -> tuple[str, str]:
        """Ask for more of a text; return the id and the answer that the agent goes on with."""
        draw = self._draw
        stream, choices = draw.random() < 0.3, 2 if draw.random() < 0.2 else 1
        body: Body = {"prompt": text, "stream": stream, "n": choices, "max_tokens": draw.choice([1, 7, 90])}
        link = "extended" if any(text.startswith(each) for each in self._answered) else "root"
        id, answers = _read(self._send(body, {}), stream)
        if draw.random() < 0.1:
            self._counts["retries"] += 1
            again = _read(self._send(body, {"x-stainless-retry-count": "1"}), stream)
            assert again == (id, answers), "a retry gets another answer"
        self.expected[id] = link
        if edited:
            self.edited[id] = edited
        self._answered += [text + answer for answer in answers]
        self._counts["requests of completions"] += 1
        self._counts["streams"] += stream
        self._counts["empty answers"] += not all(answers)
        return id, draw.choice(answers)

    def _next(self, text: str, answer: str, id: str) -> tuple[str, str]:
        """Return the next text, and the id of an answer in it that was edited."""
        kind, edited = self._draw.random(), ""
        if kind < 0.15:
            self._counts["compactions"] += 1
            return f"{self._begin}Earlier: a wall. Thought: ", ""
        shown = answer.partition("</think>")[2] or f"{answer[: len(answer) // 2]}..."
        if kind < 0.35 and answer and not shown.startswith(answer):
            self._counts["edited answers"] += 1
            self._counts["stripped thinking"] += "</think>" in answer
            answer, edited = shown, id
        return f"{text}{answer}\nObservation: {self._draw.choice(_SEEN)}\nThought: ", edited


def _read(content: bytes, stream: bool) -> tuple[str, list[str]]:
    """Return the id and the texts of an answer, whole or streamed."""
    found = events_of(content) if stream else [json.loads(content)]
    texts: dict[int, str] = {}
    for event in found:
        for choice in event["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    return found[0]["id"], [texts[k] for k in sorted(texts)]
