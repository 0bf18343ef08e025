"""Reading offers of bargaining: JSON as GLEE asks for it, or a few words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.tablegames.reading import (
    READ_LIMIT,
    first_object,
    message_of,
    simplified,
    split_speech,
    whole_number,
    with_speech,
)

_OWN_KEYS = (("player_0_gain", "alice_gain"), ("player_1_gain", "bob_gain"))
_WORDS = re.compile(r"(?:i |offer to )?keep ([0-9,]{1,14})(?:,? (?:and )?(?:to )?give ([0-9,]{1,14}))?")
_GIVING = re.compile(r"(?:i )?(?:give|offer) ([0-9,]{1,14})")
_BRACKETED = re.compile(r"\[([^\[\]]{1,100})\]")
_ASK = 'Say what you keep and what the other gets: {"keep": ..., "give": ...}.'


def read_offer(text: str, seat: int, pie: int, messages_allowed: bool) -> tuple[str, int]:
    """Return the canonical offer with its message, and what the proposer keeps.

    Raises:
        InvalidAction: There is no offer, or its two shares do not add up to the pie.

    >>> read_offer('{"alice_gain": 60, "bob_gain": 40}', 1, 100, messages_allowed=False)
    ('keep 40', 40)
    >>> read_offer("keep 70, give 30", 0, 100, messages_allowed=False)
    ('keep 70', 70)
    """
    text = text[:READ_LIMIT]
    found = first_object(text)
    speech = ""
    if found is not None:
        keep, speech = _keep_of(found, seat, pie), message_of(found)
    else:
        bare, speech = split_speech(text)
        bracketed = _BRACKETED.findall(text)
        keep = _keep_in_words(bare, pie)
        if keep is None and len(bracketed) == 1:
            keep, speech = _keep_in_words(bracketed[0], pie), ""
    if keep is None:
        raise InvalidAction(f"No offer was found in your answer. {_ASK}", "unreadable")
    action = f"keep {keep}"
    return (with_speech(action, speech) if messages_allowed else action), keep


def _keep_of(found: Mapping[str, Any], seat: int, pie: int) -> int | None:
    """Return what the proposer keeps by a JSON offer; one share is enough, as is an ``action`` in words."""
    numbers = {str(key).casefold(): whole_number(value) for key, value in found.items()}
    own, other = ("keep", *_OWN_KEYS[seat]), ("give", *_OWN_KEYS[1 - seat])
    keep = next((numbers[key] for key in own if key in numbers), None)
    give = next((numbers[key] for key in other if key in numbers), None)
    if keep is give is None and isinstance(found.get("action"), str):
        return _keep_in_words(found["action"], pie)
    return _agreeing(keep, give, pie)


def _keep_in_words(text: str, pie: int) -> int | None:
    """Return what the proposer keeps by an offer in words."""
    short = simplified(text)
    keeping, giving = _WORDS.fullmatch(short), _GIVING.fullmatch(short)
    if keeping:
        return _agreeing(whole_number(keeping[1]), whole_number(keeping[2] or ""), pie)
    return _agreeing(None, whole_number(giving[1]), pie) if giving else None


def _agreeing(keep: int | None, give: int | None, pie: int) -> int | None:
    """Return what is kept, or raise where both shares do not make the pie."""
    if keep is None:
        if give is not None and give > pie:
            raise InvalidAction(f"You may give 0 to {pie}.")
        return None if give is None else pie - give
    if give is not None and keep + give != pie:
        raise InvalidAction(f"Your shares {keep} and {give} do not add up to {pie}.")
    return keep
