"""Reflexion: the model reflects on a failed attempt, and the reflection is shown in the next one.

Shinn et al. 2023, arXiv 2303.11366. A reflection uses only the model's prompts and output, and the success reported by
the environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.chat import Message
from turngym.agents.prompting.fitting import most_that_fit
from turngym.agents.prompting.styles import STYLES, EpisodeMemory, Scene, Script, Style, Try, fitted
from turngym.errors import ConfigError

PURPOSE = "reflection"
_TASK = (
    "That try did not solve the task. Say in at most {words} words what went wrong, and what you will do otherwise "
    "when you try the same task again. Write no action."
)
_SHOWN = "You tried this task before and did not solve it. What you noted then:"


@STYLES.register("reflexion")
@dataclass(frozen=True)
class Reflexion(Style):
    """Reflects on failed attempts.

    Args:
        keep: Maximum number of shown reflections, the latest ones.
        words: Maximum length of a reflection in words, as requested in the prompt.
    """

    keep: int = 3
    words: int = 120

    name: ClassVar[str] = "reflexion"
    learns_between_tries: ClassVar[bool] = True
    texts: ClassVar[Mapping[str, str]] = {"task": _TASK, "shown": _SHOWN}

    def __post_init__(self) -> None:
        for name in ("keep", "words"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name} of the style 'reflexion' must be a whole number of at least 1.")

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask for an action; at the first turn of a later attempt, first for a reflection on the previous one."""
        if scene.request.turn == 0 and memory.tries:
            memory.lessons = tuple(text for each in memory.tries for purpose, text in each.notes if purpose == PURPOSE)
            if not memory.tries[-1].is_solved:
                lesson = yield scene.ask(_look_back(memory.tries[-1], scene, _TASK.format(words=self.words)), PURPOSE)
                memory.lessons += (lesson.strip(),) if lesson.strip() else ()
        return (yield scene.ask(fitted(memory, scene, scene.system(_known(memory.lessons[-self.keep :])))))


def _known(lessons: Sequence[str]) -> str:
    return "\n".join([_SHOWN, *(f"- {lesson}" for lesson in lessons)]) if lessons else ""


def _look_back(failed: Try, scene: Scene, task: str) -> list[Message]:
    """Return the prompt for a reflection: the rules and the failed attempt, without its first turns if too long."""

    def prompt(kept: int) -> list[Message]:
        missing = len(failed.turns) - kept
        note = [f"(The first {missing} turns are left out.)"] if missing else []
        shown = [
            f"You saw:\n{turn.observation}\nYou answered:\n{turn.completion or turn.action}"
            for turn in failed.turns[missing:]
        ]
        text = "\n\n".join([*note, *shown, f"At the end you saw:\n{failed.final_observation}", task])
        return [*scene.system(), Message("user", text)]

    return prompt(most_that_fit(len(failed.turns), lambda kept: scene.fits(prompt(kept))))
