"""The keys of the keyboard, by the names that an agent writes, as X numbers them."""

from __future__ import annotations

MODIFIERS = {"ctrl": 0xFFE3, "shift": 0xFFE1, "alt": 0xFFE9}
NAMED = {
    "Return": 0xFF0D, "Tab": 0xFF09, "Escape": 0xFF1B, "BackSpace": 0xFF08, "Delete": 0xFFFF, "Insert": 0xFF63,
    "Home": 0xFF50, "End": 0xFF57, "Page_Up": 0xFF55, "Page_Down": 0xFF56,
    "Left": 0xFF51, "Up": 0xFF52, "Right": 0xFF53, "Down": 0xFF54, "Menu": 0xFF67, "space": 0x20,
    **{f"F{number}": 0xFFBD + number for number in range(1, 13)},
}  # fmt: skip
_ALIASES = {
    "enter": "Return", "esc": "Escape", "backspace": "BackSpace", "del": "Delete", "pageup": "Page_Up",
    "pagedown": "Page_Down", "arrowleft": "Left", "arrowup": "Up", "arrowright": "Right", "arrowdown": "Down",
    "control": "ctrl",
}  # fmt: skip
_FOLDED = {name.lower(): name for name in (*NAMED, *MODIFIERS)} | _ALIASES


def chord(text: str) -> tuple[int, ...] | None:
    """Return the X numbers of the keys of a chord, modifiers first; None if it is none.

    >>> chord("ctrl+s")
    (65507, 115)
    >>> chord("Enter") == chord("Return") == (65293,)
    True
    >>> chord("ctrl+nonsense")
    """
    if not text or len(text) > 40:
        return None
    *held, last = [*text[:-1].split("+")[:-1], "+"] if text.endswith("+") else text.split("+")
    modifiers = [MODIFIERS.get(_FOLDED.get(name.lower(), "")) for name in held]
    if None in modifiers or len(set(modifiers)) < len(modifiers):
        return None
    key = keysym(last) if len(last) == 1 else NAMED.get(_FOLDED.get(last.lower(), ""))
    return None if key is None else (*(each for each in modifiers if each is not None), key)


def keysym(character: str) -> int | None:
    r"""Return the X number of what types a character, None if nothing does.

    >>> keysym("a"), keysym("\n") == NAMED["Return"], keysym("λ") == 0x010003BB, keysym("\x07")
    (97, True, True, None)
    """
    if character in "\n\t":
        return NAMED["Return" if character == "\n" else "Tab"]
    if not character.isprintable():
        return None
    code = ord(character)
    return code if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF else 0x01000000 + code
