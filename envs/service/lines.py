"""Wordings of callers: several for every act, picked by the caller's voice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Said(NamedTuple):
    """One act of a caller.

    Args:
        act: Its name.
        values: Slot -> value.
    """

    act: str
    values: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """The act in the notation that agents read."""
        return f"{self.act}({', '.join(f'{key}={value}' for key, value in self.values.items())})"


_LINES: Mapping[str, tuple[str, ...]] = {
    "request": (
        "Hello, {wish}.",
        "Hi! {wish}.",
        "Good day, {wish}.",
        "I waited for ages. So: {wish}!",
        "Listen, {wish}.",
    ),
    "another": ("Yes, one more thing: {wish}.", "There is something else: {wish}.", "Right, also: {wish}."),
    "instead": ("Then {wish} instead.", "In that case {wish}.", "Hm. All right, then {wish}."),
    "inform": (
        "It is {values}.",
        "{values}.",
        "Let me see... {values}.",
        "That would be {values}.",
        "{values}, I told you!",
    ),
    "unknown": ("I don't know that.", "No idea, sorry.", "I can't find that right now."),
    "why": ("Why do you need that?", "Is that really necessary?", "What do you want that for?"),
    "yes": ("Yes, please.", "Yes, do that.", "Fine, go ahead.", "Agreed."),
    "no": ("No, that is not it: {values}.", "No! I said {values}.", "You misunderstood: {values}."),
    "decline": ("So little? Then I'd rather not.", "No, not at that price.", "That's too bad a deal, no."),
    "claim": ("But your colleague promised me!", "Last week somebody said it would be fine!", "I was told I could."),
    "accept": ("That is a pity.", "If you say so.", "I am not happy about that."),
    "thanks": ("Thank you.", "Good to know.", "All right."),
    "nothing": ("No, that is all.", "That was everything.", "No, thanks."),
    "confused": ("What do you need from me?", "I don't follow.", "How does that help me?"),
    "leave": ("I have had enough. Goodbye!", "This leads nowhere. I am hanging up.", "Forget it!"),
}


def prose(said: Sequence[Said], phrases: Mapping[str, Sequence[str]], voice: int, turn: int) -> str:
    """Return what a caller says.

    Args:
        said: The acts.
        phrases: Kind of wish -> wordings of it.
        voice: The caller's voice.
        turn: Number of the reply, so that a caller does not repeat one wording.
    """
    return " ".join(_line(each, phrases, voice + 7 * turn) for each in said)


def _line(said: Said, phrases: Mapping[str, Sequence[str]], number: int) -> str:
    options = _LINES[said.act]
    line = options[number % len(options)]
    values = {key: value for key, value in said.values.items() if key != "kind"}
    shown = ", ".join(f"{key} {value}" for key, value in values.items())
    wishes = phrases.get(str(said.values.get("kind")), ("I need something",))
    wish = wishes[number // 5 % len(wishes)]
    return line.format(values=shown, wish=f"{wish} ({shown})" if shown else wish)
