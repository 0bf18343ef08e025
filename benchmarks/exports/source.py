"""The folder that an export reads, and texts as other tools take them."""

from __future__ import annotations

from collections.abc import Mapping
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


def shown(observation: Any) -> str:
    """Return an observation as text; of one with an image, its text."""
    return plain(observation["text"] if isinstance(observation, Mapping) and "text" in observation else observation)
