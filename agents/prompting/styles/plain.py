"""Rules, and what is seen: the model answers with an action. The agents do this by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.prompting.styles import PLAIN, STYLES, Scene, Script, Story, Style, fitted


@STYLES.register(PLAIN)
@dataclass(frozen=True)
class Plain(Style):
    """Shows the rules and the conversation so far, and adds nothing.

    ``--style plain`` does not come here: agents build these prompts themselves, in the modes ``window`` and
    ``conversation``. It is what other styles are compared with and built on.
    """

    name: ClassVar[str] = PLAIN

    def turn(self, story: Story, scene: Scene) -> Script:
        """Ask once."""
        return (yield scene.ask(fitted(story, scene, scene.system())))
