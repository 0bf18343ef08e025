"""A model's thinking in what it wrote: where it is, and the answer without it.

Marks come from the chat templates of the known families; a template with others adds them, see
:attr:`turngym.agents.prompting.chat_template.ChatTemplate.thinking`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from turngym.envs.parsing.scanning import Element, first_element

MARKS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<thought>", "</thought>"),
    ("<|channel>", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
"""Marks around thinking: Qwen, DeepSeek, GLM and others; Magistral; Seed; Kimi-VL; EXAONE; Gemma; Command; Apertus;
gpt-oss."""
MOST_THOUGHTS = 64
"""Thoughts of an answer behind which no element is looked for."""
_ALSO_ENDS_OTHERS = "<|end|>"
_HEADERS = re.compile(
    r"(?:<\|end\|>)?<\|start\|>assistant(?:<\|channel\|>(?:final|commentary)<\|message\|>)?|"
    r"<\|channel\|>(?:final|commentary)<\|message\|>"
)


@dataclass(frozen=True)
class Thinking:
    """How a model marks its thinking.

    Args:
        marks: Pairs of marks that open and close it.
        begun: The opening mark that prompts end with, so that an answer starts inside of the thinking; mostly empty.

    >>> Thinking().without("<think>The box is above.</think> <action>up</action>")
    '<action>up</action>'
    >>> Thinking().without("<think>up or <action>left</action>")
    ''
    >>> Thinking().without("<|channel|>analysis<|message|>Above.<|end|><|start|>assistant<|channel|>final<|message|>up")
    'up'
    """

    marks: tuple[tuple[str, str], ...] = MARKS
    begun: str = ""

    @cached_property
    def _opens(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(mark) for mark, _ in self.marks))

    @cached_property
    def _first_closing(self) -> re.Pattern[str]:
        """What ends thinking whose beginning the answer does not hold."""
        closing = [mark for _, mark in self.marks if mark != _ALSO_ENDS_OTHERS]
        return re.compile("|".join(map(re.escape, [self._close_of[self.begun]] if self.begun else closing)))

    @cached_property
    def _close_of(self) -> dict[str, str]:
        return dict(self.marks)

    def first_element(self, text: str, names: Collection[str]) -> Element | None:
        """Return the first element outside of thinking; marks inside of an element belong to its content."""
        place = 0
        for number, (start, end) in enumerate(self.spans(text)):
            if (found := first_element(text[place:], names)) is None or number == MOST_THOUGHTS:
                return None
            if found.start < start - place:
                return found._replace(start=found.start + place)
            place = end
        found = first_element(text[place:], names)
        return None if found is None else found._replace(start=found.start + place)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where thinking starts and ends, marks included; thinking that never ends goes up to the end."""
        opening, closing = self._opens.search(text), self._first_closing.search(text)
        place = 0
        is_inside = bool(self.begun) and (opening is None or bool(text[: opening.start()].strip()))
        if closing is not None and (is_inside or opening is None or closing.start() < opening.start()):
            yield 0, (place := closing.end())
        elif is_inside:
            yield 0, len(text)
            return
        while (opening := self._opens.search(text, place)) is not None:
            close = self._close_of[opening[0]]
            stop = text.find(close, opening.end())
            place = len(text) if stop < 0 else stop + len(close)
            yield opening.start(), place

    def closed(self, text: str) -> str:
        r"""Return an answer that was not sampled, behind the end of thinking that prompts begin.

        >>> Thinking(begun="<think>").closed("up"), Thinking().closed("up")
        ('</think>\n\nup', 'up')
        """
        return f"{self._close_of[self.begun]}\n\n{text}" if self.begun else text

    def without(self, text: str) -> str:
        """Return an answer without the thinking in it."""
        parts, end = [], 0
        for start, stop in self.spans(text):
            parts.append(text[end:start].lstrip() if end else text[:start])
            end = stop
        parts.append(text[end:].lstrip() if end else text)
        return _HEADERS.sub("", "".join(parts))

    def masked(self, text: str) -> str:
        """Return an answer of the same length with spaces in place of its thinking."""
        parts, end = [], 0
        for start, stop in self.spans(text):
            parts += [text[end:start], " " * (stop - start)]
            end = stop
        return "".join([*parts, text[end:]])


THINKING = Thinking()
"""The marks of all known families."""
