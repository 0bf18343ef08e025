"""Reading answers: an action alone, in brackets, in quotation marks or in JSON, in any case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.speech import safe_speech
from turngym.envs.parsing import json_text

READ_LIMIT = 10_000
"""Characters of an answer in which an action is looked for."""

_LONGEST = 200
_ATTEMPTS = 8
_BRACKETED = re.compile(r"\[([^\[\]]{1,200})\]")
_KEYS = ("action", "move", "decision", "answer", "choice")
_EDGES = " \t\r\n[]()<>{}\"'`*_.,;:!"
_SAY = " | "


def simplified(text: str) -> str:
    """Return a text in lower case, without brackets and quotation marks around it, its blanks single.

    A point or comma right before a digit stays, since it is part of a number.

    >>> simplified(" [Check]. "), simplified("Tit_for  tat"), simplified("[.5]")
    ('check', 'tit for tat', '.5')
    """
    if len(text) > _LONGEST:
        text = text.strip()[: _LONGEST + 1]
        if len(text) > _LONGEST:
            return ""
    folded = " ".join(text.casefold().replace("_", " ").split()).rstrip(_EDGES)
    short = folded.lstrip(_EDGES)
    before = folded[: len(folded) - len(short)][-1:]
    return f"{before}{short}" if before in (".", ",") and short[:1].isdecimal() else short


def first_object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text, None if there is none among its first braces.

    >>> first_object('I think {no} of {"decision": "accept"}')
    {'decision': 'accept'}
    """
    return json_text.first_object(text, _ATTEMPTS)


def read_choice(text: str, meanings: Mapping[str, str]) -> str:
    """Return the action that an answer names.

    Args:
        text: Answer of a player.
        meanings: Simplified text -> canonical action.

    Raises:
        InvalidAction: No action was found, or several.

    >>> read_choice('{"action": "Bet"}', {"bet": "bet"}), read_choice("I am strong: [BET]", {"bet": "bet"})
    ('bet', 'bet')
    """
    if text in meanings:
        return meanings[text]
    text = text[:READ_LIMIT]
    alone = meanings.get(simplified(text))
    if alone is not None:
        return alone
    values = (first_object(text) or {}) if "{" in text else {}
    named = [
        str(value) for key, value in values.items() if key.casefold() in _KEYS and isinstance(value, str | int | float)
    ]
    found = {meanings[short] for short in map(simplified, named or _BRACKETED.findall(text)) if short in meanings}
    if len(found) == 1:
        return found.pop()
    if found:
        raise InvalidAction("Your answer names more than one action: answer with one.", "unreadable")
    raise InvalidAction("No action was found in your answer.", "unreadable")


def with_speech(action: str, speech: str) -> str:
    """Return the canonical text of an action and what is said with it.

    >>> with_speech("accept", "Deal!"), with_speech("accept", "")
    ('accept | Deal!', 'accept')
    """
    speech = safe_speech(speech)
    return f"{action}{_SAY}{speech}" if speech else action


def split_speech(action: str) -> tuple[str, str]:
    """Return the two parts of what :func:`with_speech` made.

    >>> split_speech("accept | Deal!"), split_speech("accept")
    (('accept', 'Deal!'), ('accept', ''))
    """
    bare, _, speech = action.partition(_SAY)
    return bare, speech


def whole_number(value: object) -> int | None:
    """Return a number that JSON or text gave, None if it is not a whole number from 0 to a billion.

    >>> whole_number("1,000"), whole_number(40.0), whole_number("40 gold"), whole_number(True)
    (1000, 40, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip().replace(",", "").removeprefix("$").removesuffix(".0")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else None
    if isinstance(value, int | float) and 0 <= value <= 1e9 and value == int(value):
        return int(value)
    return None


def read_decision(text: str, meanings: Mapping[str, str], messages_allowed: bool) -> str:
    """Return the action that an answer names, with the message if there may be one.

    Args:
        text: Answer of a player: words, or JSON such as ``{"decision": ..., "message": ...}``.
        meanings: Simplified text -> canonical action.
        messages_allowed: Whether the message is kept.

    Raises:
        InvalidAction: No action was found, or several.

    >>> read_decision('{"decision": "Accept", "message": "Fine."}', {"accept": "accept"}, messages_allowed=True)
    'accept | Fine.'
    """
    text = text[:READ_LIMIT]
    bare, speech = split_speech(text)
    found = first_object(text)
    if found is not None:
        bare, speech = text, message_of(found)
    elif simplified(bare) not in meanings:
        bare, speech = text, ""
    action = read_choice(bare, meanings)
    return with_speech(action, speech) if messages_allowed else action


def message_of(found: Mapping[str, Any]) -> str:
    """Return the message in a JSON answer, empty if there is none.

    >>> message_of({"message": "Fine."}), message_of({"message": 3})
    ('Fine.', '')
    """
    message = found.get("message", "")
    return message if isinstance(message, str) else ""
