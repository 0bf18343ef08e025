"""Experiences: lessons in the prompt, written by a model that compared good and bad episodes of other tasks.

The prompts of training-free GRPO (Cai et al. 2025, arXiv 2510.08191); `turngym learn-experiences` writes the list.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from turngym.agents.prompting.experiences import numbered, read_experiences
from turngym.agents.prompting.styles import STYLES, EpisodeMemory, Scene, Script, Style, fitted
from turngym.errors import ConfigError

_SHOWN = "Advice from earlier episodes of other tasks. It may be wrong, and changes neither rules nor answer format:"


@STYLES.register("experiences")
@dataclass(frozen=True)
class Experiences(Style):
    """Shows a list of experiences; the prompt is plain while the list is empty.

    Args:
        file: File of `turngym learn-experiences`; read once.
        share: Maximum share of a prompt's tokens for experiences; later ones that do not fit are dropped.
    """

    file: str = ""
    share: float = 0.5

    name: ClassVar[str] = "experiences"
    texts: ClassVar[Mapping[str, str]] = {"shown": _SHOWN}

    def __post_init__(self) -> None:
        object.__setattr__(self, "file", str(self.file))  # a name of digits is parsed as a number
        if not self.file:
            raise ConfigError("the style 'experiences' needs the file that holds them: experiences:file=FILE.")
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(f"share of the style 'experiences' must be above 0 and at most 1, got {self.share!r}.")
        vars(self)["known"] = self.known  # read now, so that an invalid file is rejected at startup

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The experiences.

        Raises:
            ConfigError: The file is missing or is not a file of experiences.
        """
        return tuple(read_experiences(Path(self.file))["experiences"])

    def describe(self) -> dict[str, Any]:
        """Return name, options and texts, with a hash of the experiences instead of their file."""
        digest = hashlib.sha256(json.dumps(self.known).encode()).hexdigest()
        options = {"share": self.share, "experiences": len(self.known), "experiences_sha256": digest}
        return {"name": self.name, "options": options, "texts": dict(self.texts)}

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask once, with the experiences that fit, selected at the first turn."""
        if not memory.lessons:
            memory.lessons = self._fitting(scene)
        return (yield scene.ask(fitted(memory, scene, scene.system(_listed(memory.lessons)))))

    def _fitting(self, scene: Scene) -> tuple[str, ...]:
        """Return the longest prefix of the list that fits."""
        limit, low, high = int(self.share * scene.model.fitting_limit), 0, len(self.known)
        while low < high:
            middle = (low + high + 1) // 2
            fits = scene.fits(scene.system(_listed(self.known[:middle])), limit)
            low, high = (middle, high) if fits else (low, middle - 1)
        return self.known[:low]


def _listed(experiences: Sequence[str]) -> str:
    return f"{_SHOWN}\n{numbered(experiences)}" if experiences else ""
