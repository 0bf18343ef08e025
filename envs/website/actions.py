"""Actions on a page and their effects."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from turngym.envs.website.page import OFF, ON, Page, Piece, one_line

FORMAT = """click N             follow link [N], or press button (N)
fill N TEXT         write a text into a field
select N OPTION     choose one of the options in braces
check N, uncheck N  change a box, yes or no
press Enter         send the form of the field filled last
back                go back to the page before
goto /PATH          open a page of the site"""
_ACTION = re.compile(r"(click|fill|select|check|uncheck)\s++\[?\(?\s*+(\d{1,6})\s*\)?\]?(?:\s(.*))?", re.I | re.S)
_PRESS = re.compile(r"press\s+(?:enter|return)", re.I)
_GOTO = re.compile(r"goto\s+(\S+)", re.I)
_PATH = re.compile(r"(?:/[a-z0-9]+)+")
LONGEST = 1000


class Move(NamedTuple):
    """Effect of an action.

    Args:
        kind: Open a path, follow a link, send a form, enter a value, put the caret into a field, go back.
        piece: The piece it is done to; for a form sent by a key, the field that the key is pressed in.
        text: The value to enter, or the path to open.
    """

    kind: Literal["open", "follow", "send", "enter", "focus", "back"]
    piece: Piece = Piece("text", "")
    text: str = ""


def plan(action: str, page: Page, focus: int, can_go_back: bool) -> Move | str | None:
    """Return what an action comes to on a page.

    Args:
        action: Any text.
        page: The page shown.
        focus: Number of the field that has the caret; 0 for none.
        can_go_back: Whether there is a page before.

    Returns:
        The move; a text where it cannot be done, with the reason; None where it is no action.
    """
    text = action.strip()
    if len(text) > LONGEST:
        return None
    if found := _ACTION.fullmatch(text):
        return _on_piece(found[1].lower(), int(found[2]), found[3] or "", page)
    if _PRESS.fullmatch(text):
        if not focus:
            return "no field has been filled on this page"
        return Move("send", page.pieces[focus - 1])
    if text.lower() == "back":
        return Move("back") if can_go_back else "there is no page before"
    if found := _GOTO.fullmatch(text):
        if len(found[1]) > 200 or not _PATH.fullmatch(found[1]):
            return "only pages of this site can be opened, as in goto /path"
        return Move("open", text=found[1])
    return None


def _on_piece(verb: str, number: int, text: str, page: Page) -> Move | str | None:
    pieces = page.pieces
    if not 1 <= number <= len(pieces):
        return f"there is no [{number}] on the page"
    piece = pieces[number - 1]
    if verb == "fill":
        if piece.kind != "field":
            return f"[{number}] is no field"
        return Move("enter", piece, one_line(_unquoted(text)))
    if verb == "select":
        return _selected(piece, _unquoted(text))
    if text.strip():
        return None
    if verb in ("check", "uncheck"):
        return Move("enter", piece, ON if verb == "check" else OFF) if piece.kind == "box" else f"[{number}] is no box"
    if piece.kind == "box":
        return Move("enter", piece, OFF if piece.value == ON else ON)
    return Move("follow" if piece.kind == "link" else "send" if piece.kind == "button" else "focus", piece)


def _selected(piece: Piece, text: str) -> Move | str:
    wanted = one_line(text)
    if piece.kind != "select":
        return f"[{piece.number}] has no options"
    same = [option for option in piece.options if option == wanted]
    same = same or [option for option in piece.options if option.casefold() == wanted.casefold()]
    if not same:
        return f"[{piece.number}] has no option {wanted[:60]!r}"
    return Move("enter", piece, same[0])


def _unquoted(text: str) -> str:
    """Return a text without one pair of quotes around it."""
    bare = text.strip()
    return bare[1:-1] if len(bare) >= 2 and bare[0] == bare[-1] == '"' else bare


_QUOTED = re.compile(r'"([^"]+)"')


def listed(page: Page, goal: str, can_go_back: bool) -> tuple[str, ...]:
    """Return the actions that make sense on a page: links, buttons, options, and the goal's quoted words for fields."""
    texts = dict.fromkeys(_QUOTED.findall(goal))
    found: list[str] = []
    for piece in page.pieces:
        if piece.kind == "field":
            found += [f"fill {piece.number} {text}" for text in texts if text != piece.value]
        elif piece.kind == "select":
            found += [f"select {piece.number} {option}" for option in piece.options if option != piece.value]
        elif piece.kind == "box":
            found.append(f"{'uncheck' if piece.value == ON else 'check'} {piece.number}")
        else:
            found.append(f"click {piece.number}")
    return (*found, "back") if can_go_back else tuple(found)
