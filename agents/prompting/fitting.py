"""Shortening of prompts that do not fit: selection of dropped turns, and the note about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from turngym.agents.prompt_text import Fit

if TYPE_CHECKING:
    from turngym.agents.chat import ChatModel, Message

FILLED = 0.75
"""Share of the limit to which conversations are shortened, to leave room for further turns."""
_MOST_ACTIONS = 4
_LONGEST_ACTION = 24


class PastTurn(NamedTuple):
    """A past turn for later prompts.

    Args:
        observation: Observation.
        answer: Visible part of the answer.
        action: The action in it.
        ids: The answer's tokens exactly as sampled, if known.
    """

    observation: str
    answer: str
    action: str = ""
    ids: tuple[int, ...] = ()


class Gap(NamedTuple):
    """Dropped turns of a prompt: ``start`` up to, but not including, ``stop``."""

    start: int = 0
    stop: int = 0

    @property
    def size(self) -> int:
        """Number of dropped turns."""
        return self.stop - self.start


def gap_for(fit: Fit, total: int, kept: int) -> Gap:
    """Return the turns to drop so that ``kept`` turns stay.

    Args:
        fit: Setting of the prompts.
        total: Number of earlier turns.
        kept: Number of turns to keep; ``drop_middle`` always keeps the first one, which often holds the task.

    >>> gap_for("drop_oldest", 10, 3), gap_for("drop_middle", 10, 3), gap_for("drop_middle", 10, 0)
    (Gap(start=0, stop=7), Gap(start=1, stop=8), Gap(start=1, stop=10))
    """
    start = min(total, 1) if fit == "drop_middle" else 0
    return Gap(start, min(total - kept + start, total))


def most_that_fit(most: int, fits: Callable[[int], bool]) -> int:
    """Return the maximum number in [0, most] that fits, or 0 if none does; ``fits`` must be monotone.

    >>> most_that_fit(100, lambda count: count <= 37)
    37
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def with_last_turns(model: ChatModel, turns: int, prompt: Callable[[int], list[Message]]) -> list[Message]:
    """Return a prompt with as few dropped first turns as possible.

    Args:
        model: The model.
        turns: Number of turns.
        prompt: Returns the prompt for a number of dropped turns.
    """

    def fits(kept: int) -> bool:
        return model.count(prompt(turns - kept)) <= model.fitting_limit

    return prompt(0 if fits(turns) else turns - most_that_fit(max(turns - 1, 0), fits))


def note_of(fit: Fit, actions: Sequence[str], at_beginning: bool = True) -> str:
    """Return the note that replaces dropped turns.

    Args:
        fit: Shortening of prompts.
        actions: Actions of the dropped turns.
        at_beginning: True if no turn is shown before them.

    >>> note_of("drop_oldest", ["up"])
    '(1 earlier turn is left out.)'
    >>> note_of("summary", ["up", "left", "up", "up"])
    '(4 earlier turns are left out. Actions in them: up 3 times, left. The last ones: up, left, up, up.)'
    """
    count = len(actions)
    earlier = "earlier " if at_beginning else ""
    text = f"{count} {earlier}turn{'s are' if count > 1 else ' is'} left out{'' if at_beginning else ' here'}."
    if fit != "summary":
        return f"({text})"
    short = [_shortened(action) for action in actions]
    counted = [f"{action} {number} times" if number > 1 else action for action, number in Counter(short).most_common()]
    more = f", {len(counted) - _MOST_ACTIONS} more" if len(counted) > _MOST_ACTIONS else ""
    return (
        f"({text} Actions in them: {', '.join(counted[:_MOST_ACTIONS])}{more}. "
        f"The last ones: {', '.join(short[-_MOST_ACTIONS:])}.)"
    )


def _shortened(action: str) -> str:
    words = " ".join(action.split()) or "(none)"
    return words if len(words) <= _LONGEST_ACTION else words[: _LONGEST_ACTION - 3] + "..."


def with_note(note: str, text: str) -> str:
    """Return a text preceded by a note, if there is one."""
    return f"{note}\n\n{text}" if note else text
