"""Notes: the model keeps notes that stay in the prompt when older turns are dropped, without extra calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.chat import Message
from turngym.agents.prompting.fitting import with_note
from turngym.agents.prompting.styles import STYLES, EpisodeMemory, Scene, Script, Style, fitted
from turngym.envs.parsing.scanning import elements
from turngym.errors import ConfigError

_ADD, _REPLACE = "note", "notes"
_HOW = (
    "Older turns of a long game leave your view, and your notes stay. Before the action of a turn you may write "
    "<note>TEXT</note> to add a note, or <notes>TEXT</notes> to replace all of them, one in each line: names, numbers "
    "and paths that later actions need, what is done, and what is still to do. If there are too many, the oldest go."
)
_SHOWN = "Your notes:"


@STYLES.register("notes")
@dataclass(frozen=True)
class Notes(Style):
    """Shows the notes that the model wrote in its answers above the current observation.

    Notes are read outside the reasoning and before the first action of an answer, so the answer format must allow text
    around the action. A repeated note moves to the end.

    Args:
        share: Maximum share of a prompt's tokens for notes; the oldest are dropped.
    """

    share: float = 0.25

    name: ClassVar[str] = "notes"
    texts: ClassVar[Mapping[str, str]] = {"how": _HOW, "shown": _SHOWN}

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise ConfigError(f"share of the style 'notes' must be above 0 and at most 1, got {self.share!r}.")

    def turn(self, memory: EpisodeMemory, scene: Scene) -> Script:
        """Ask once, with the notes so far.

        Raises:
            ConfigError: The answer format does not allow notes.
        """
        if scene.model.format_of(scene.request).name == "plain":
            raise ConfigError(
                "the style 'notes' needs an answer format with text around the action, got 'plain': use --format tag, "
                "boxed or json."
            )
        total = len(memory.left_out) + len(memory.turns)
        for turn in memory.turns[len(memory.turns) - (total - memory.noted) :]:
            memory.notes = added(memory.notes, _written(turn.completion, scene))
        memory.noted = total
        most = int(self.share * scene.model.fitting_limit)
        while memory.notes and not scene.fits([Message("user", _text(memory.notes))], most):
            memory.notes = memory.notes[1:]
        now = scene.now(with_note(_text(memory.notes), scene.shown))
        return (yield scene.ask(fitted(memory, scene, scene.system(_HOW), now)))


def added(notes: tuple[str, ...], text: str) -> tuple[str, ...]:
    r"""Return the notes after an answer.

    Args:
        notes: Notes before it.
        text: The answer, without reasoning and actions.

    >>> added(("key 7",), "The box. <note>box in hall</note> <note>key 7</note>")
    ('box in hall', 'key 7')
    >>> added(("key 7",), "<notes>box open\nkey used</notes>")
    ('box open', 'key used')
    """
    for start, end in elements(text, (_ADD, _REPLACE)):
        is_all = text.startswith(f"<{_REPLACE}>", start)
        content = text[start:end].partition(">")[2].rpartition("</")[0]
        lines = (
            [line.strip().removeprefix("- ") for line in content.splitlines()]
            if is_all
            else [" ".join(content.split())]
        )
        kept = () if is_all else notes
        notes = tuple(dict.fromkeys([*(note for note in kept if note not in lines), *filter(None, lines)]))
    return notes


def _written(completion: str, scene: Scene) -> str:
    """Return an answer up to its first action, with spaces in place of reasoning."""
    regions = scene.model.format_of(scene.request).regions
    text = scene.model.thinking.masked(completion, regions)
    return text[: next((start for start, _ in regions(text)), len(text))]


def _text(notes: tuple[str, ...]) -> str:
    return "\n".join([_SHOWN, *(f"- {note}" for note in notes)]) if notes else ""
