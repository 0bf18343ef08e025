"""Summary memory: when a prompt exceeds its budget, the model writes a summary that replaces older turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.chat import Message
from turngym.agents.prompting.styles import (
    STYLES,
    ChatTurn,
    EpisodeMemory,
    Scene,
    Script,
    Style,
    conversation_so_far,
    fitted,
)
from turngym.errors import ConfigError

PURPOSE = "summary"
_TASK = (
    "Some turns of this game will be taken out of view. Write the summary that is kept in their place: what was found "
    "out, what was done and what came of it, and what is still to be tried. Write at most {words} words and no action."
)
_SHOWN = "Summary of the earlier turns, written by you:"


@STYLES.register(PURPOSE)
@dataclass(frozen=True)
class Summary(Style):
    """Keeps a running summary.

    Args:
        budget: Tokens of a prompt above which older turns are summarised; at most ``max_prompt_tokens``, which 0
            selects.
        keep: Number of last turns that are kept verbatim.
        words: Longest summary, as the prompt requests it.
    """

    budget: int = 0
    keep: int = 2
    words: int = 120

    name: ClassVar[str] = PURPOSE
    texts: ClassVar[Mapping[str, str]] = {"task": _TASK, "shown": _SHOWN}

    def __post_init__(self) -> None:
        for name, least in (("budget", 0), ("keep", 0), ("words", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name} of the style 'summary' must be a whole number of at least {least}.")

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask for an action, and first for a summary if the prompt is too long without one."""
        limit = scene.model.fitting_limit
        budget = min(self.budget or limit, limit)
        if len(memory.turns) > self.keep and not scene.fits(_prompt(memory, scene), budget):
            yield from self._shorten(memory, scene)
        return (yield scene.ask(fitted(memory, scene, scene.system(_known(memory)))))

    def _shorten(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Let the model summarise all but the last turns; turns that do not fit into one prompt are left out."""
        count = len(memory.turns) - self.keep
        old, memory.turns = memory.turns[:count], memory.turns[count:]
        task = _TASK.format(words=self.words)
        first = next((i for i in range(len(old)) if scene.fits(_to_summarise(old[i:], memory, scene, task))), len(old))
        memory.left_out += tuple(turn.action for turn in old[:first])
        if first == len(old):
            return ""
        summary = (yield scene.ask(_to_summarise(old[first:], memory, scene, task), PURPOSE)).strip()
        if summary:
            memory.summary, memory.left_out, memory.gap = summary, (), 0
        else:
            memory.left_out += tuple(turn.action for turn in old[first:])
        return summary


def _known(memory: EpisodeMemory) -> str:
    return f"{_SHOWN}\n{memory.summary}" if memory.summary else ""


def _prompt(memory: EpisodeMemory, scene: Scene) -> list[Message]:
    return [*scene.system(_known(memory)), *conversation_so_far(memory, scene)]


def _to_summarise(turns: Sequence[ChatTurn], memory: EpisodeMemory, scene: Scene, task: str) -> list[Message]:
    """Return the prompt for a summary: rules, the summary so far, the turns to replace, and the request."""
    text = "\n\n".join([*_lines(turns), task])
    return [*scene.system(_known(memory)), Message("user", text)]


def _lines(turns: Sequence[ChatTurn]) -> Iterator[str]:
    for turn in turns:
        yield f"You saw:\n{turn.observation}\nYou answered:\n{turn.completion or '(no answer)'}"
