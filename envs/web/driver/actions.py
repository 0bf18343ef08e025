"""The actions of a page and their syntax: one action per turn, never a script.

Every action names an element by its number in the observation, or a point by its coordinates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Point: TypeAlias = tuple[float, float]
Place: TypeAlias = int | Point
Kind: TypeAlias = Literal[
    "click", "dblclick", "fill", "type", "select", "press", "hover", "drag", "scroll", "focus", "back", "wait", "accept"
]
DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
LONGEST_TEXT = 2000
_FARTHEST = 100_000.0
FORMAT = """click N | click X,Y      click element N, or a point of the page
dblclick N               click it twice
fill N TEXT              replace what a text field holds
select N OPTION          choose an option of a list; several are separated by |
type TEXT                type into what has the focus
press KEY                press a key, as Enter, Tab, ArrowDown or Control+a
hover N | hover X,Y      move the mouse there
drag A to B              drag from A to B, each an element or a point
scroll N down | scroll down   scroll an element, or the page: up, down, left or right
focus N                  give an element the focus
back                     go back to the page before
wait                     let time pass"""

_PLACE = r"(?:\[\s*\d+\s*\]|\d+(?!\s*,)|\(?\s*+-?\d+(?:\.\d+)?\s*,\s*-?\d+(?:\.\d+)?(?:\s*\))?)"
_ONE = re.compile(rf"(click|dblclick|hover|focus)\s++({_PLACE})", re.IGNORECASE)
_TEXT = re.compile(r"(fill|select)\s++\[?\s*+(\d+)\s*\]?(?:\s(.*))?", re.IGNORECASE | re.DOTALL)
_TYPE = re.compile(r"type\s(.*)", re.IGNORECASE | re.DOTALL)
_PRESS = re.compile(r"press\s+(\S+)", re.IGNORECASE)
_DRAG = re.compile(rf"drag\s++({_PLACE})\s+to\s++({_PLACE})", re.IGNORECASE)
_SCROLL = re.compile(r"scroll\s++(?:\[?\s*+(\d+)(?:\s*\])?\s+)?(up|down|left|right)", re.IGNORECASE)
_BARE = re.compile(r"(back|wait)", re.IGNORECASE)
_ACCEPT = re.compile(r"accept(?:\s(.*))?", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Action:
    """One action, read.

    Args:
        kind: Action.
        place: Where: the number of an element or a point; 0 for the page as a whole.
        end: End of a drag.
        text: What to fill in, select, type or press, the direction of a scroll, or the answer to a dialog.
    """

    kind: Kind
    place: Place = 0
    end: Place = 0
    text: str = ""


def read(text: str) -> Action | None:
    """Parse an action; None if the text is not one.

    >>> read("click 12")
    Action(kind='click', place=12, end=0, text='')
    >>> read('fill 3 "two words"')
    Action(kind='fill', place=3, end=0, text='two words')
    >>> read("drag 4 to 80,20.5").end
    (80.0, 20.5)
    >>> read("window.location = 'elsewhere'")
    """
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        return None
    if found := _ONE.fullmatch(text):
        place = _place(found[2])
        kind: Kind = found[1].lower()  # type: ignore[assignment]  # the pattern lets nothing else through
        return None if kind in ("focus", "dblclick") and not isinstance(place, int) else Action(kind, place)
    if found := _TEXT.fullmatch(text):
        value = _unquoted(found[3] or "")
        if found[1].lower() == "fill":
            return Action("fill", int(found[2]), text=value)
        return Action("select", int(found[2]), text=value) if value else None
    if found := _DRAG.fullmatch(text):
        return Action("drag", _place(found[1]), _place(found[2]))
    if found := _SCROLL.fullmatch(text):
        return Action("scroll", int(found[1] or 0), text=found[2].lower())
    if found := _PRESS.fullmatch(text):
        return Action("press", text=found[1])
    if found := _TYPE.fullmatch(text):
        return Action("type", text=_unquoted(found[1]))
    if found := _ACCEPT.fullmatch(text):
        return Action("accept", text=_unquoted(found[1] or ""))
    if found := _BARE.fullmatch(text):
        return Action(found[1].lower())  # type: ignore[arg-type]  # the pattern lets nothing else through
    return None


def _place(text: str) -> Place:
    numbers = _NUMBER.findall(text)
    return int(numbers[0]) if len(numbers) == 1 else (_coordinate(numbers[0]), _coordinate(numbers[1]))


def _coordinate(text: str) -> float:
    """Return a number, at most as large as browsers take: beyond any page is beyond it.

    >>> _coordinate("20.5"), _coordinate("-" + "9" * 400)
    (20.5, -100000.0)
    """
    return max(-_FARTHEST, min(_FARTHEST, float(text)))


def _unquoted(text: str) -> str:
    """Return the text without one pair of quotes around it, which keeps blanks at its ends."""
    bare = text.strip()
    return bare[1:-1] if len(bare) >= 2 and bare[0] == bare[-1] == '"' else text
