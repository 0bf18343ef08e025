"""Lessons: messages that precede the policy's prompts for the teacher only.

A lesson is one system message at the start of every sequence of an episode; the sampled tokens after it do not change.
It consists of pieces:

- ``sibling``: the first other episode of the group that solved the task, turn by turn;
- ``feedback``: the final observation of the episode itself;
- ``column=NAME``: a text column of the episode, such as a demonstration that an environment or a wrapper adds;
- ``hint=TEXT``: the same text for every episode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from turngym.agents.models.loading import Vocabulary
from turngym.agents.prompting.chat_template import RENDER_ERRORS, ChatTemplate
from turngym.agents.prompting.prompts import PromptConfig
from turngym.agents.prompting.text_encoder import TextEncoder
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError, nearest
from turngym.trainers.core.rows import Row
from turngym.trainers.engine.teachers import Lessons

Piece: TypeAlias = Callable[[Sequence[Trajectory]], list[str]]
"""Maps the episodes of a batch to a text for each, empty for none."""
LONGEST = 8000
"""Maximum length of a piece in characters; longer ones are truncated."""


def _siblings(episodes: Sequence[Trajectory]) -> list[str]:
    solved: dict[int, list[int]] = {}
    for number, each in enumerate(episodes):
        if each.success == 1:
            solved.setdefault(each.spec.group, []).append(number)
    found = []
    for number, each in enumerate(episodes):
        others = [other for other in solved.get(each.spec.group, []) if other != number]
        found.append(f"This solves the task:\n{transcript(episodes[others[0]])}" if others else "")
    return found


def transcript(episode: Trajectory) -> str:
    """Return the observations and answers of an episode."""
    return "\n\n".join(f"{turn.observation}\n{turn.completion or turn.action}" for turn in episode.turns)


def _feedback(episodes: Sequence[Trajectory]) -> list[str]:
    return [f"An attempt ended with:\n{each.final_observation}" if each.final_observation else "" for each in episodes]


def _column(name: str) -> Piece:
    def texts(episodes: Sequence[Trajectory]) -> list[str]:
        values = [each.columns.get(name, "") for each in episodes]
        if any(not isinstance(value, str) for value in values):
            raise ConfigError(f"the episode column {name!r} has numbers; a lesson needs a column of texts.")
        return [str(value) for value in values]

    return texts


def _hint(text: str) -> Piece:
    return lambda episodes: [text] * len(episodes)


_PLAIN: dict[str, Piece] = {"sibling": _siblings, "feedback": _feedback}
_WITH_VALUE: dict[str, Callable[[str], Piece]] = {"column": _column, "hint": _hint}


def piece_of(specification: str) -> Piece:
    """Return a piece of a lesson, such as ``sibling`` or ``hint=TEXT``.

    Raises:
        ConfigError: There is no piece of that name, or its value is missing.
    """
    name, _, value = specification.partition("=")
    if name in _PLAIN and not value:
        return _PLAIN[name]
    if name in _WITH_VALUE and value.strip():
        return _WITH_VALUE[name](value)
    known = [*_PLAIN, *(f"{name}=..." for name in _WITH_VALUE)]
    raise ConfigError(
        f"{specification!r} is not a lesson of a teacher: expected {', '.join(known)}. {nearest(name, known)}"
    )


def lessons_of(pieces: Sequence[str], vocabulary: Vocabulary) -> Lessons | None:
    """Return the lessons composed of some pieces; None without any.

    Args:
        pieces: Specifications, as :func:`piece_of` reads them.
        vocabulary: Tokenizer of policy and teacher.

    Raises:
        ConfigError: A specification is wrong.
    """
    parts = [piece_of(each) for each in pieces]
    if not parts:
        return None
    template, encoder = ChatTemplate(vocabulary.tokenizer, PromptConfig()), TextEncoder(vocabulary.tokenizer)

    def tokens(text: str) -> tuple[int, ...]:
        return encoder.encode([(text, "none")], lambda texts: _rendered(template, texts[0]))

    def lessons(episodes: Sequence[Trajectory]) -> list[tuple[int, ...] | None]:
        columns = [[text[:LONGEST] for text in part(episodes)] for part in parts]
        texts = ["\n\n".join(filter(None, pieces)) for pieces in zip(*columns, strict=True)]
        return [tokens(text) if text else None for text in texts]

    return lessons


def _rendered(template: ChatTemplate, text: str) -> str:
    """Return a system message, or a user message if the template cannot render a system message alone."""
    try:
        return template.render([("system", text)], False)
    except RENDER_ERRORS:
        return template.render([("user", text)], False)


def rows_after(rows: Sequence[Row], prefixes: Sequence[tuple[int, ...] | None]) -> list[Row]:
    """Return sequences preceded by the prefix of their episode, without those that have no prefix or no sampled token.

    A first token shared with the prefix, such as a start token, is not repeated.

    Args:
        rows: The sequences.
        prefixes: Tokens for each episode of the turn table.

    >>> from turngym.trainers.core.rows import Read
    >>> rows = [Row.of([1, 5, 6], [Read(1, 6, 0, 0, 0)]), Row.of([1, 7, 8], [Read(1, 8, 1, 1, 1)])]
    >>> [(row.ids.tolist(), row.reads.position.tolist()) for row in rows_after(rows, [(1, 9), None])]
    [([1, 9, 5, 6], [2])]
    """
    found = []
    for row in rows:
        prefix = prefixes[int(row.reads.episode[0])]
        if prefix is None or not (row.reads.token >= 0).any():
            continue
        start = np.array(prefix, dtype=np.int64)
        ids = row.ids[1:] if len(start) and row.ids[0] == start[0] else row.ids
        reads = replace(row.reads, position=row.reads.position + len(start) + len(ids) - len(row.ids))
        found.append(Row(np.concatenate([start, ids]), reads, row.pictures))
    return found
