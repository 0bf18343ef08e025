"""Reading offers of a price: JSON as GLEE asks for it, or a few words."""

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

_KEYS = ("product_price", "price", "offer")
_WORDS = re.compile(r"(?:i )?(?:offer|ask|ask for|price|my price is)? ?:? ?([$]?[0-9,]{1,14}(?:\.0)?)")
_BRACKETED = re.compile(r"\[([^\[\]]{1,100})\]")


def read_price(text: str, messages_allowed: bool) -> tuple[str, int]:
    """Return the canonical offer with its message, and the price.

    Raises:
        InvalidAction: There is no whole price.

    >>> read_price('{"product_price": "$1,000", "message": "Take it."}', messages_allowed=True)
    ('price 1000 | Take it.', 1000)
    >>> read_price("I offer $90.", messages_allowed=False)
    ('price 90', 90)
    """
    text = text[:READ_LIMIT]
    found = first_object(text)
    if found is not None:
        price, speech = _price_of(found), message_of(found)
    else:
        bare, speech = split_speech(text)
        price = _price_in_words(bare)
        bracketed = _BRACKETED.findall(text)
        if price is None and len(bracketed) == 1:
            price, speech = _price_in_words(bracketed[0]), ""
    if price is None:
        raise InvalidAction('No price was found in your answer. Name a whole number: {"price": ...}.', "unreadable")
    action = f"price {price}"
    return (with_speech(action, speech) if messages_allowed else action), price


def _price_of(found: Mapping[str, Any]) -> int | None:
    values = {str(key).casefold(): value for key, value in found.items()}
    named = next((values[key] for key in _KEYS if key in values), None)
    if named is None and isinstance(values.get("action"), str):
        return _price_in_words(values["action"])
    return whole_number(named)


def _price_in_words(text: str) -> int | None:
    match = _WORDS.fullmatch(simplified(text))
    return None if match is None else whole_number(match[1])
