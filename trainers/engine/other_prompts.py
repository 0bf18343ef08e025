"""A further pass of the policy: what it sampled, behind prompts in which another text stands for the observation.

Only the tokens of the observation are exchanged; those before and after it, earlier answers included, stay as they
were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from turngym.agents.models.loading import LanguageModel
from turngym.agents.prompting.chat_template import RENDER_ERRORS
from turngym.agents.prompting.text_encoder import TextEncoder
from turngym.agents.trajectory import Turn
from turngym.trainers.core.flattened import FlatTurn
from turngym.trainers.core.rows import build_batch, rows_of
from turngym.trainers.core.turn_table import TurnTable
from turngym.trainers.engine.network_columns import Networks, sampled_logprobs

_PART = "\ufffd"
_CONTENT = "[content]"
_LONGEST_CHARACTER = 4
"""Bytes of a character, and so the most tokens that hold a part of it each."""


class _Piece(NamedTuple):
    """Tokens that make up whole characters: their text, and where they start and end in a prompt."""

    text: str
    start: int
    end: int


def _end_of(model: LanguageModel) -> str:
    """Return what the chat template writes after the last message; empty if that is not known."""
    message = {"role": "user", "content": _CONTENT}
    try:
        prompt = model.tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True)
    except RENDER_ERRORS:
        return ""
    return str(prompt).rpartition(_CONTENT)[2]


class PromptEditor:
    """Exchanges the last occurrence of a text in the tokens of a prompt, before what the chat template ends it with.

    Args:
        model: The policy, for its tokenizer.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._encoder = TextEncoder(model.tokenizer)
        self._text = cache(lambda tokens: model.text_of(tokens))
        self._end = _end_of(model)

    def exchanged(self, prompt: Sequence[int], text: str, other: str) -> tuple[int, ...]:
        """Return the tokens with another text in place of a text; empty where it is not found.

        Args:
            prompt: Token ids.
            text: Text in the prompt; spaces around it do not count.
            other: Its replacement.
        """
        pieces = self._pieces(prompt)
        whole, wanted = "".join(piece.text for piece in pieces), text.strip()
        start = whole.removesuffix(self._end).rfind(wanted) if wanted else -1
        if start < 0:
            return ()
        ends = list(accumulate(len(piece.text) for piece in pieces))
        first, last = bisect_right(ends, start), bisect_left(ends, start + len(wanted))
        before, after = whole[ends[first] - len(pieces[first].text) : start], whole[start + len(wanted) : ends[last]]
        middle = self._encoder.encode([(before + other + after, "none")], lambda contents: contents[0], begins=False)
        return (*prompt[: pieces[first].start], *middle, *prompt[pieces[last].end :])

    def _pieces(self, prompt: Sequence[int]) -> list[_Piece]:
        """Split a prompt into the smallest runs of tokens without a part of a character, where there are such."""
        found, start = [], 0
        for end in range(1, len(prompt) + 1):
            text = self._text(tuple(prompt[start:end]))
            if not text.endswith(_PART) or end - start == _LONGEST_CHARACTER or end == len(prompt):
                found.append(_Piece(text, start, end))
                start = end
        return found


def with_other_prompts(
    table: TurnTable,
    turns: Sequence[FlatTurn],
    model: LanguageModel,
    networks: Networks,
    other: Callable[[Turn], str | None],
) -> TurnTable:
    """Return the table with the log-probabilities of the sampled tokens behind other prompts, nan without one.

    Args:
        table: The table.
        turns: Its turns.
        model: The policy.
        networks: Layout of sequences.
        other: Returns the text in place of a turn's observation; None for no other prompt.
    """
    editor = PromptEditor(model)

    def edited(each: FlatTurn) -> FlatTurn:
        text = None if each.turn.pictures else other(each.turn)
        prompt = () if text is None else editor.exchanged(each.turn.prompt_ids, each.turn.observation, text)
        return each._replace(turn=replace(each.turn, prompt_ids=prompt))

    rows = rows_of([edited(each) for each in turns], with_final_prompts=False)
    found = sampled_logprobs(build_batch(rows), table, networks.policy, networks, fill=float("nan"))
    return replace(table, token_other_logprob=found)
