"""The folder that an export reads, and texts as other tools take them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from turngym.agents.recordings.submission import Submission, load_submission
from turngym.errors import ConfigError

Content: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What is exported.

    Args:
        folder: Folder of an evaluation, or of a training run for formats of conversations.
        success: Whether only solved episodes are exported.
    """

    folder: Path
    success: bool = False

    @cached_property
    def submission(self) -> Submission:
        """The evaluation in the folder, for formats of whole evaluations.

        Raises:
            ConfigError: There is none, or only solved episodes are wanted.
        """
        if self.success:
            raise ConfigError("--success is for chat, sft, parquet and hf: a log of an evaluation has every episode.")
        return load_submission(self.folder)


def plain(text: Any) -> str:
    r"""Return a text that every reader of JSON takes: lone surrogates, which an action may hold, become ``?``.

    >>> plain("a\ud800b")
    'a?b'
    """
    return str(text).encode("utf8", "replace").decode("utf8")


_MOST_NUMBERS = 400
"""Numbers of an array that are shown; a larger one, such as an image, is shown by its size."""


def shown(observation: Any) -> str:
    r"""Return an observation as text: of one with an image its text, of others a line for each entry or row.

    >>> shown({"text": "a door", "image": [[0]]}), shown({"at": [1, 2], "grid": [[0, 1], [1, 0]]})
    ('a door', 'at: 1 2\ngrid:\n0 1\n1 0')
    >>> shown([[[0, 0, 255]] * 64] * 48)
    '(48 x 64 x 3 numbers)'
    """
    if isinstance(observation, Mapping):
        return plain(observation["text"]) if "text" in observation else "\n".join(_entries(observation))
    if isinstance(observation, list):
        return _rows(observation)
    return "" if observation is None else plain(observation)


def _entries(observation: Mapping[str, Any]) -> Iterator[str]:
    for key, value in observation.items():
        text = shown(value)
        gap = "\n" if "\n" in text else " "
        yield plain(f"{key}:{gap}{text}")


def _rows(values: list[Any]) -> str:
    """Return a list as text: on one line if it is flat, otherwise an entry a line; a large one by its size."""
    size, inner = [len(values)], values
    while inner and isinstance(inner[0], list):
        inner = inner[0]
        size.append(len(inner))
    if math.prod(size) > _MOST_NUMBERS:
        return f"({' x '.join(map(str, size))} numbers)"
    is_flat = not any(isinstance(each, list | Mapping) for each in values)
    return (" " if is_flat else "\n").join(map(shown, values))
