"""The plain style: rules and observations in, an action out. Agents implement it themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.prompting.styles import PLAIN, STYLES, EpisodeMemory, Scene, Script, Style, fitted


@STYLES.register(PLAIN)
@dataclass(frozen=True)
class Plain(Style):
    """Shows the rules and the conversation so far, and adds nothing.

    ``--style plain`` does not use this class: agents build these prompts themselves, in the modes ``window`` and
    ``conversation``. It is the base and the baseline of other styles.
    """

    name: ClassVar[str] = PLAIN

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask once."""
        return (yield scene.ask(fitted(memory, scene, scene.system())))
