"""The tokens between two completions of a conversation, for any chat template.

A conversation is append-only: sampled tokens stay, and only the text between completions comes from the template. A
template that rewrites earlier answers or drops their reasoning therefore does not affect the tokens. A completion is
followed by the end of its turn (unless sampled), the next user message, and the start of the next answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from turngym.agents.prompting.chat_template import RENDER_ERRORS, ChatTemplate, Said
from turngym.agents.prompting.text_encoder import TextEncoder
from turngym.errors import ConfigError

_ANSWER = "\u241fanswer\u241f"
_SEEN = "\u241fseen\u241f"
_WAYS_TO_ANSWER = (_ANSWER, f"<think>\n-\n</think>\n\n{_ANSWER}")
"""Templates may expect reasoning in an answer."""
_CACHED = 1000


class Continuation:
    """Continues conversations after a completion.

    Args:
        template: The chat template.
        encoder: Encoder of rendered text.
        stop_ids: The tokens that end a completion.

    Raises:
        ConfigError: The template cannot render a user message after an answer.
    """

    def __init__(self, template: ChatTemplate, encoder: TextEncoder, stop_ids: frozenset[int]) -> None:
        self.template = template
        self.encoder = encoder
        self.stop_ids = stop_ids
        self._answer = self._usable_answer()
        self._counts_turns = self._after_answer(_SEEN, 1) != self._after_answer(_SEEN, 2)
        self._ids_of = lru_cache(maxsize=_CACHED)(self._encode)
        self._written = self._written_ends()

    def after(self, last: int, shown: str, turns: int) -> tuple[int, ...]:
        """Return the tokens from the end of a completion to the start of the next one.

        Args:
            last: The last token of the completion, possibly an end token.
            shown: Next user message.
            turns: Number of earlier turns.
        """
        ids = self._ids_of(shown, max(turns, 1) if self._counts_turns else 1)
        return ids[self.written(last) :]

    @property
    def answer(self) -> tuple[str, str]:
        """The text before and after an answer in an assistant message that the template shows."""
        before, _, after = self._answer.partition(_ANSWER)
        return before, after

    def written(self, last: int) -> int:
        """Return the number of template tokens after an answer that its last token replaces: 0 unless an end token."""
        return self._written.get(last, 0)

    def _encode(self, shown: str, turns: int) -> tuple[int, ...]:
        return self.encoder.encode([(shown, "none")], lambda texts: self._after_answer(texts[0], turns), begins=False)

    def _usable_answer(self) -> str:
        """Return an answer that the template shows before the next message.

        Raises:
            ConfigError: There is none.
        """
        reason = "it leaves out the answer, or what the user says after it"
        for answer in _WAYS_TO_ANSWER:
            self._answer = answer
            try:
                if _SEEN in self._after_answer(_SEEN, 1):
                    return answer
            except RENDER_ERRORS as error:
                reason = f"{type(error).__name__}: {error}"
        raise ConfigError(
            "this tokenizer's chat template cannot continue a conversation, because it shows no message of the user "
            f"after an answer ({reason}): use prompt mode 'window', or another template with chat_template=FILE."
        )

    def _after_answer(self, shown: str, turns: int) -> str:
        """Return the template's text between the last answer and the next one; empty if it drops the answer."""
        past: list[Said] = [("user", "-"), ("assistant", self._answer.replace(_ANSWER, "-"))] * (turns - 1)
        text = self.template.render([*past, ("user", "-"), ("assistant", self._answer), ("user", shown)], True)
        return text.partition(_ANSWER)[2]

    def _written_ends(self) -> dict[int, int]:
        """Return, for each end token of the model, the number of template tokens after an answer that it replaces.

        That is the end of an earlier answer in the template, which may be several tokens, another token than after the
        last answer, or nothing at all: then the first token after an answer starts the next message, and only the same
        token stands for it.
        """
        ids = self._ids_of(_SEEN, 1)
        last = self._encoded(self._rendered([("user", "-"), ("assistant", self._answer)], False).partition(_ANSWER)[2])
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids, last, strict=False))))
        first = self.first_control(ids)
        if first < 0:
            return {}
        closing = ids[: max(shared, first + 1)]
        written = {token: closing.index(token) + 1 for token in self.stop_ids.intersection(closing)}
        if not self._ends_answers(ids[first]):
            return written
        other = self.first_control(last)
        is_same = other >= 0 and last[other] in self.stop_ids
        most = min(written.values(), default=first + 1 if is_same else 0)
        return {token: written.get(token, most) for token in self.stop_ids}

    def _ends_answers(self, token: int) -> bool:
        """Return True if the control token after an answer belongs to it, and not to the next message."""
        before, _, after = self._rendered([("user", _SEEN)], True).partition(_SEEN)
        ids = self._encoded(after)
        first = self.first_control(ids)
        opening = self._after_answer(_SEEN, 1).partition(_SEEN)[0]
        return (first >= 0 and ids[first] == token) or not before.endswith(opening)

    def _rendered(self, messages: Sequence[Said], add_generation_prompt: bool) -> str:
        try:
            return self.template.render(messages, add_generation_prompt)
        except RENDER_ERRORS:
            return ""

    def _encoded(self, text: str) -> tuple[int, ...]:
        return self.encoder.encode_template(text) if text else ()

    def first_control(self, ids: Sequence[int]) -> int:
        """Return the index of the first control token if preceded only by spaces, else -1."""
        for place, token in enumerate(ids):
            if token in self.stop_ids or self.encoder.is_control(token):
                return place if not str(self.encoder.tokenizer.decode(list(ids[:place]))).strip() else -1
        return -1
