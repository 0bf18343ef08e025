"""Rendering of conversations with a tokenizer's chat template, for all supported roles."""

from __future__ import annotations

import datetime
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.template_memory import size_limit
from turngym.agents.prompting.time_limit import time_limit
from turngym.envs.parsing.thinking import MARKS, Thinking
from turngym.errors import ConfigError, PromptWarning, TurngymError

Said: TypeAlias = tuple[str, str]
"""Role and text of a message."""
RENDER_SECONDS = 5.0
"""Maximum CPU time of a rendering."""
RENDER_SIZE = 2**28
"""Maximum characters and items created by a rendering, over all steps."""


class RenderLimit(TurngymError, RuntimeError):
    """A chat template exceeds a resource limit; not retried in another form."""


class RenderTimeout(RenderLimit):
    """A chat template exceeds the time limit."""

    def __init__(self) -> None:
        super().__init__(
            f"the chat template takes more than {RENDER_SECONDS:g} seconds for a conversation: pass another one with "
            "chat_template=FILE."
        )


class RenderTooLarge(RenderLimit):
    """A chat template exceeds the size limit."""

    def __init__(self) -> None:
        super().__init__(
            f"the chat template makes more than {RENDER_SIZE} characters for a conversation: pass another one with "
            "chat_template=FILE."
        )


RENDER_ERRORS = (TemplateError, TypeError, ValueError, KeyError, IndexError)
"""Exceptions raised by templates for unsupported conversations."""
_PROBE = "\u241fprobe\u241f"
_THOUGHT = "\u241fthought\u241f"
_NOW = re.compile(r"""strftime_now\(\s*(["'])([^"'\\]*)\1\s*\)""")
_MARK = re.compile(r"</?[^<>\s]{1,60}>|\[/?[A-Z_]{1,40}\]|<[^<>\s]{1,60}>")


class ChatTemplate:
    """The chat template of a tokenizer, or a custom one.

    For a template without a system role, the system text is moved to the start of the first user message, with one
    warning. A template that expects message contents in parts, as for vision models, gets one text part.

    Args:
        tokenizer: A tokenizer with a chat template.
        config: Variables of the template, and optionally another template.

    Raises:
        ConfigError: The template cannot be rendered, or drops user messages.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, config: PromptConfig) -> None:
        self.tokenizer = tokenizer
        self._options: dict[str, Any] = dict(config.template)
        self._given = config.chat_template or None
        self._dated = lru_cache(maxsize=8)(partial(_dated, date=config.date))
        if "strftime_now" in self.source:
            warnings.warn(
                f"the chat template writes a date into prompts: {config.date}. Set another one with date=YYYY-MM-DD.",
                PromptWarning,
                stacklevel=3,
            )
        self._in_parts = False
        if not (error := self._unusable()):
            return
        self._in_parts = True
        if self._unusable():
            raise error

    def _unusable(self) -> ConfigError | None:
        """Return the reason why a user message cannot be shown; None if it can."""
        try:
            shown = self._rendered([("user", _PROBE)], True)
        except RENDER_ERRORS as error:
            return ConfigError(
                f"the chat template cannot be rendered ({type(error).__name__}: {error}): set its variables with "
                "template.NAME=VALUE, or pass another one with chat_template=FILE."
            )
        if _PROBE in shown:
            return None
        return ConfigError("the chat template drops what the user says: pass another one with chat_template=FILE.")

    @cached_property
    def source(self) -> str:
        """The Jinja template; empty if there is none."""
        try:
            return self._source()
        except ValueError:
            return ""

    def _source(self, tools: list[Any] | None = None) -> str:
        return str(self.tokenizer.get_chat_template(self._given, tools))

    @cached_property
    def has_system(self) -> bool:
        """True if the template shows system messages; warns once if it does not."""
        try:
            found = _PROBE in self._rendered([("system", _PROBE), ("user", "-")], True)
        except RENDER_ERRORS:
            found = False
        if not found:
            warnings.warn(
                "the chat template has no role for the system: its text is put before the first message of the user.",
                PromptWarning,
                stacklevel=3,
            )
        return found

    @cached_property
    def thinking(self) -> Thinking:
        """Reasoning markers of the model: known ones, or those of the template."""
        asked: Mapping[str, Any] = {"role": "user", "content": self.content("-")}
        try:
            prompt = self.apply([asked], True)
        except RENDER_ERRORS:
            return Thinking()
        marks = MARKS
        for key in ("reasoning_content", "thinking"):
            answer = {"role": "assistant", "content": self.content(_PROBE), key: _THOUGHT}
            try:
                text = self.apply([asked, answer], False)
            except RENDER_ERRORS:
                continue
            before, found, after = text.partition(_THOUGHT)
            opening, closing = before[shared(prompt, before) :].strip(), _MARK.search(after)
            if found and _PROBE in after and closing is not None and _MARK.search(opening):
                if not any(opening == known or opening.startswith(known) for known, _ in marks):
                    marks = ((opening, closing[0]), *marks)
                break
        line = prompt.rstrip().rpartition("\n")[2]
        return Thinking(marks, next((opening for opening, _ in marks if line.endswith(opening)), ""))

    def render(self, messages: Sequence[Said], add_generation_prompt: bool) -> str:
        """Return a conversation as text."""
        if messages and messages[0][0] == "system" and not self.has_system:
            messages = folded(messages)
        return self._rendered(messages, add_generation_prompt)

    def _rendered(self, messages: Sequence[Said], add_generation_prompt: bool) -> str:
        return self.apply(
            [{"role": role, "content": self.content(text)} for role, text in messages], add_generation_prompt
        )

    def apply(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Return messages rendered by the template; raises one of ``RENDER_ERRORS`` on failure."""
        listed: list[Any] | None = [dict(tool) for tool in tools] or None
        with size_limit(RENDER_SIZE, RenderTooLarge), time_limit(RENDER_SECONDS, RenderTimeout):
            text = self.tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tools=listed,
                chat_template=self._dated(self._source(listed)),
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **self._options,
            )
        return str(text)

    def content(self, text: str) -> Any:
        """Return the content of a message in the form that the template expects."""
        return [{"type": "text", "text": text}] if self._in_parts else text


def _dated(source: str, date: str) -> str:
    """Return a template with a fixed date instead of the current one.

    >>> _dated("{{ strftime_now('%d %b %Y') }}", "2025-01-31")
    '{{ "31 Jan 2025" }}'
    """
    day = datetime.datetime.fromisoformat(date)
    return _NOW.sub(lambda found: json.dumps(day.strftime(found[2])), source)


def shared(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts, up to a mark that only one of them has.

    >>> shared("a wall", "a well"), shared("a <think>", "a <tool_call>")
    (3, 2)
    """
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    opened = max(first.rfind("<", 0, low), first.rfind("[", 0, low))
    closed = max(first.rfind(">", 0, low), first.rfind("]", 0, low))
    return opened if low < len(first) and opened > closed else low


def folded(messages: Sequence[Said]) -> list[Said]:
    r"""Return a conversation with the system text moved to the start of its first user message.

    >>> folded([("system", "Push boxes."), ("user", "a wall")])
    [('user', 'Push boxes.\n\na wall')]
    """
    system, *rest = messages
    if not rest or rest[0][0] != "user":
        return [("user", system[1]), *rest]
    return [("user", f"{system[1]}\n\n{rest[0][1]}"), *rest[1:]]
