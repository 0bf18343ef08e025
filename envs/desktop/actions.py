"""The actions of a desktop and their syntax: one action per turn, by mouse or keyboard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from turngym.envs.desktop.keys import chord, keysym

Kind: TypeAlias = Literal[
    "click", "double_click", "right_click", "move", "drag", "scroll", "type", "key", "wait", "done"
]
Point: TypeAlias = tuple[int, int]
LONGEST_TEXT = 2000
_MOST_CLICKS = 20
FORMAT = """click X Y             press the left button at a point of the screen; double_click X Y, right_click X Y
move X Y              move the mouse there
drag X Y to X Y       press at one point and release at another
scroll X Y down N     turn the wheel there by N clicks, up or down; N may be left out
type "TEXT"           type text; \\n is the key Return, \\t is Tab, \\" a quote, \\\\ a backslash
key NAME              press a key or a chord, as Return, Escape, Down, F5, ctrl+s, ctrl+shift+s or alt+f
wait                  do nothing
done                  say that the goal is reached, which ends the episode"""

_POINT = r"\(?\s*+(\d{1,5})(?:\s*,\s*|\s+)(\d{1,5})(?:\s*\))?"
_AT = re.compile(rf"(click|double_click|right_click|move)\s++{_POINT}", re.IGNORECASE)
_DRAG = re.compile(rf"drag\s++{_POINT}\s+to\s++{_POINT}", re.IGNORECASE)
_SCROLL = re.compile(rf"scroll\s++{_POINT}\s+(up|down)(?:\s+(\d{{1,3}}))?", re.IGNORECASE)
_TYPE = re.compile(r"type\s(.*)", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"key\s+(\S+)", re.IGNORECASE)
_BARE = re.compile(r"(wait|done)", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Action:
    """One action, read.

    Args:
        kind: Action.
        at: Position on the screen.
        to: End of a drag.
        text: Text to type, or direction of a scroll.
        keys: X numbers of the keys to press, the modifiers first.
        times: Clicks of the mouse wheel.
    """

    kind: Kind
    at: Point = (0, 0)
    to: Point = (0, 0)
    text: str = ""
    keys: tuple[int, ...] = ()
    times: int = 1

    def order(self) -> dict[str, Any]:
        """Return it as a value that JSON can hold."""
        found = {"kind": self.kind, "at": self.at, "to": self.to, "text": self.text, "keys": self.keys}
        return {**found, "times": self.times}


def read(text: str) -> Action | None:
    r"""Parse an action; None if the text is not one.

    >>> read("click 40 20")
    Action(kind='click', at=(40, 20), to=(0, 0), text='', keys=(), times=1)
    >>> read("drag (1, 2) to (3, 4)").to
    (3, 4)
    >>> read(r'type "two\nlines"').text
    'two\nlines'
    >>> read("key ctrl+s").keys
    (65507, 115)
    >>> read("rm -r /")
    """
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        return None
    if found := _AT.fullmatch(text):
        return Action(found[1].lower(), _point(found[2], found[3]))  # type: ignore[arg-type]  # as the pattern has it
    if found := _DRAG.fullmatch(text):
        return Action("drag", _point(found[1], found[2]), _point(found[3], found[4]))
    if found := _SCROLL.fullmatch(text):
        times = int(found[4] or 3)
        at = _point(found[1], found[2])
        return Action("scroll", at, text=found[3].lower(), times=times) if 1 <= times <= _MOST_CLICKS else None
    if found := _TYPE.fullmatch(text):
        typed = _unquoted(found[1])
        return Action("type", text=typed) if typed and all(keysym(each) is not None for each in typed) else None
    if found := _KEY.fullmatch(text):
        keys = chord(found[1])
        return None if keys is None else Action("key", keys=keys)
    if found := _BARE.fullmatch(text):
        return Action(found[1].lower())  # type: ignore[arg-type]  # as the pattern has it
    return None


def _point(x: str, y: str) -> Point:
    return int(x), int(y)


def _unquoted(text: str) -> str:
    """Return the value of a quoted text; without quotes, the text itself."""
    bare = text.strip()
    if len(bare) < 2 or bare[0] != '"' or bare[-1] != '"':
        return bare
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), bare[1:-1])


def typed(text: str) -> str:
    r"""Return the action that types a text.

    >>> print(typed('say "a\\b"' + "\n"))
    type "say \"a\\b\"\n"
    """
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'type "{text}"'
