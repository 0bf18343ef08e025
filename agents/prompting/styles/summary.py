"""Summary memory: when a prompt exceeds its budget, the model writes a summary that replaces older turns.

The first turn, which often contains the task, stays unless ``fit`` of the prompt's settings drops it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.chat import Message
from turngym.agents.prompting.fitting import most_that_fit
from turngym.agents.prompting.styles import (
    STYLES,
    ChatTurn,
    EpisodeMemory,
    Scene,
    Script,
    Style,
    conversation_so_far,
    first_kept,
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
        budget: Prompt length in tokens above which older turns are summarised; at most ``max_prompt_tokens``, which is
            used for 0.
        keep: Number of last turns kept verbatim.
        words: Maximum length of a summary in words, as requested in the prompt.
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
        first = first_kept(scene)
        if len(memory.turns) > first + self.keep and not scene.fits(_prompt(memory, scene), budget):
            yield from self._shorten(memory, scene, first)
        return (yield scene.ask(fitted(memory, scene, scene.system(_known(memory)))))

    def _shorten(self, memory: EpisodeMemory, scene: Scene, first: int) -> Script:
        """Let the model summarise the middle turns; those that do not fit are dropped."""
        stop = len(memory.turns) - self.keep
        old, memory.turns = memory.turns[first:stop], [*memory.turns[:first], *memory.turns[stop:]]

        def request(count: int) -> list[Message]:
            turns = [*memory.turns[:first], *old[len(old) - count :]]
            return _to_summarise(turns, memory, scene, _TASK.format(words=self.words))

        told = most_that_fit(len(old), lambda count: scene.fits(request(count)))
        left_out = tuple(turn.action for turn in old)
        memory.gap = first
        if not told:
            memory.left_out += left_out
            return ""
        memory.left_out += left_out[: len(old) - told]
        summary = (yield scene.ask(request(told), PURPOSE)).strip()
        if summary:
            memory.summary, memory.left_out = summary, ()
        else:
            memory.left_out += left_out[len(old) - told :]
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
