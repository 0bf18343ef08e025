"""A model's thinking in what it wrote: where it is, and the answer without it.

Marks come from the chat templates of the known families; a template with others adds them, see
:attr:`turngym.agents.prompting.chat_template.ChatTemplate.thinking`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

from turngym.envs.parsing.scanning import Element, elements, first_element

Regions: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Yields where the calls or actions in a text start and end, in order."""

MARKS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<thought>", "</thought>"),
    ("<|channel>", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
"""Marks around thinking: Qwen, DeepSeek, GLM and others; Magistral; Seed; Kimi-VL; EXAONE; Gemma; Command;
OpenThinker; Apertus; gpt-oss; and two that prompts ask for."""
_MOST_THOUGHTS = 64
"""Thoughts of an answer, where calls or actions are looked for between them, after which the rest is thinking."""
_ALSO_ENDS_OTHERS = "<|end|>"
_HEADERS = re.compile(
    r"(?:<\|end\|>)?<\|start\|>assistant(?:<\|channel\|>(?:final|commentary)<\|message\|>)?|"
    r"<\|channel\|>(?:final|commentary)<\|message\|>"
)


_SENTENCE_END = re.compile(rf"(?:{_HEADERS.pattern}|[.!?:;\u2026\n>\])}}][^\S\n]{{0,8}}|\A[\W_]*)\Z")
_LONGEST_HEADER = 80


def _nowhere(text: str) -> Iterable[tuple[int, int]]:
    return ()


class _Known:
    """Calls or actions of a text from a place on, looked for once as far as they are asked for."""

    def __init__(self, text: str, regions: Regions) -> None:
        self._text, self._regions = text, regions
        self.are_passed = False
        """True if a call or action ends before the last mark that was asked about."""
        self.restart(0)

    def restart(self, place: int) -> None:
        """Look from a place on, which is behind thinking."""
        self._base, self._current = place, (0, 0)
        self._left: Iterator[tuple[int, int]] | None = None

    @property
    def is_read(self) -> bool:
        """True if any was looked for since the last restart."""
        return self._left is not None

    def end_around(self, mark: int) -> int:
        """Return where the region ends that a mark is inside of; 0 if there is none."""
        if self._left is None:
            self._left = iter(self._regions(self._text[self._base :]))
        while self._current[1] <= mark:
            self.are_passed = self.are_passed or self._current[1] > 0
            found = next(self._left, None)
            self._current = (found[0] + self._base, found[1] + self._base) if found else (len(self._text),) * 2
            if not found:
                break
        return self._current[1] if self._current[0] < mark else 0


@dataclass(frozen=True)
class Thinking:
    """Reasoning markers of a model.

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
        """End of reasoning whose start is not in the answer."""
        closing = [mark for _, mark in self.marks if mark != _ALSO_ENDS_OTHERS]
        return re.compile("|".join(map(re.escape, [self._close_of[self.begun]] if self.begun else closing)))

    @cached_property
    def _close_of(self) -> dict[str, str]:
        return dict(self.marks)

    def first_element(self, text: str, names: Collection[str]) -> Element | None:
        """Return the first element outside of thinking; marks inside of an element belong to its content."""
        place = 0
        for number, (start, end) in enumerate(self.spans(text, partial(elements, names=names))):
            if (found := first_element(text[place:], names)) is None or number == _MOST_THOUGHTS:
                return None
            if found.start < start - place:
                return found._replace(start=found.start + place)
            place = end
        found = first_element(text[place:], names)
        return None if found is None else found._replace(start=found.start + place)

    def spans(self, text: str, regions: Regions = _nowhere) -> Iterator[tuple[int, int]]:
        """Yield where thinking starts and ends, marks included.

        Thinking that is not closed goes up to the end. A mark in the middle of a sentence that is not closed is text,
        as where an answer speaks of it, unless a call or action is before it; so is a mark inside of a call or action.

        Args:
            text: An answer.
            regions: Positions of calls or actions in a text.
        """
        known = _Known(text, regions)
        place = seek = self._first_end(text, known)
        if place:
            yield 0, place
        unclosed, number = set[str](), 0
        while (opening := self._opens.search(text, seek)) is not None:
            start, close = opening.start(), self._close_of[opening[0]]
            is_first = seek == place and not _HEADERS.sub("", text[place:start]).strip()
            if not is_first and (end := known.end_around(start)):
                place = seek = end
                continue
            stop = -1 if close in unclosed else text.find(close, opening.end())
            if stop < 0:
                unclosed.add(close)
                is_text = not (is_first or known.are_passed)
                if is_text and _SENTENCE_END.search(text, max(start - _LONGEST_HEADER, 0), start) is None:
                    seek = opening.end()
                    continue
            number += known.is_read
            is_last = stop < 0 or number > _MOST_THOUGHTS
            place = seek = len(text) if is_last else stop + len(close)
            known.restart(place)
            yield start, place

    def _first_end(self, text: str, known: _Known) -> int:
        """Return where thinking ends whose beginning the answer does not hold; 0 if there is none."""
        closing = self._first_closing.search(text)
        if self.begun:
            opening = self._opens.search(text)
            if opening is None or text[: opening.start()].strip():
                return len(text) if closing is None else closing.end()
        before = self._first_thought(text) if closing is not None else 0
        while closing is not None and closing.start() < before:
            if not (end := known.end_around(closing.start())):
                known.restart(closing.end())
                return closing.end()
            closing = self._first_closing.search(text, end)
        return 0

    def _first_thought(self, text: str) -> int:
        """Return where the first mark is that opens the answer or that is closed."""
        opening = self._opens.search(text)
        if opening is not None and not _HEADERS.sub("", text[: opening.start()]).strip():
            return opening.start()
        starts = ((text.find(begin), begin, end) for begin, end in self.marks)
        closed = (at for at, begin, end in starts if at >= 0 and text.find(end, at + len(begin)) >= 0)
        return min(closed, default=len(text))

    def closed(self, text: str) -> str:
        r"""Return an answer that was not sampled, behind the end of thinking that prompts start.

        >>> Thinking(begun="<think>").closed("up"), Thinking().closed("up")
        ('</think>\n\nup', 'up')
        """
        return f"{self._close_of[self.begun]}\n\n{text}" if self.begun else text

    def without(self, text: str, regions: Regions = _nowhere) -> str:
        """Return an answer without the thinking in it."""
        parts, end = [], 0
        for start, stop in self.spans(text, regions):
            parts.append(text[end:start].lstrip() if end else text[:start])
            end = stop
        parts.append(text[end:].lstrip() if end else text)
        return _HEADERS.sub("", "".join(parts))

    def masked(self, text: str, regions: Regions = _nowhere) -> str:
        """Return an answer of the same length with spaces in place of its thinking."""
        parts, end = [], 0
        for start, stop in self.spans(text, regions):
            parts += [text[end:start], " " * (stop - start)]
            end = stop
        return "".join([*parts, text[end:]])


THINKING = Thinking()
"""The marks of all known families."""
