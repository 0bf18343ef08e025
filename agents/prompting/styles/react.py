"""ReAct: a thought before every action, and all earlier thoughts shown (Yao et al. 2023, arXiv 2210.03629)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.prompting.styles import STYLES, EpisodeMemory, Scene, Script, Style, fitted

_HOW = (
    "At every turn first write one line that begins with 'Thought:' and says what you know, what you want, and why the "
    "next action leads there. Then write the action in the answer format. Your earlier thoughts stay in view."
)


@STYLES.register("react")
@dataclass(frozen=True)
class React(Style):
    """Asks for a thought and then the action; both stay in the conversation."""

    name: ClassVar[str] = "react"
    texts: ClassVar[Mapping[str, str]] = {"how": _HOW}

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask once, with the earlier thoughts."""
        return (yield scene.ask(fitted(memory, scene, scene.system(_HOW))))
