"""Reading turns of simple negotiation: an action in brackets, in JSON or alone, and what is said around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.tablegames.reading import READ_LIMIT, first_object, simplified, split_speech
from turngym.envs.tablegames.simple_negotiation.rules import Offer, parsed_offer

_BRACKETED = re.compile(r"\[([^\[\]]{1,200})\]")
_WORDS = {
    **{form: "accept" for form in ("accept", "i accept")},
    **{form: "deny" for form in ("deny", "reject", "i deny", "i reject")},
    **{form: "pass" for form in ("pass", "no offer")},
}
_KNOWN_STARTS = ("offer", "accept", "deny", "reject", "pass", "trade")


def read_turn(text: str, goods: Sequence[str], talk: bool) -> tuple[str | Offer, str]:
    """Return a turn's action and what is said with it.

    Args:
        text: Answer of a player.
        goods: Names of the goods.
        talk: Whether a text without an action is something said.

    Returns:
        ``"accept"``, ``"deny"``, ``"pass"`` or an offer, and the speech.

    Raises:
        InvalidAction: There is no action, several, or an offer that cannot be read.

    >>> read_turn("A fair deal: [Offer: 2 Wood -> 1 Gold]", ("wood", "gold"), talk=True)
    (Offer(gives=(2, 0), wants=(0, 1)), 'A fair deal:')
    """
    text = text[:READ_LIMIT]
    bare, speech = split_speech(text)
    alone = _action(bare, goods)
    if alone is not None:
        return alone, speech
    found = first_object(text) if "{" in text else None
    if found is not None:
        return _from_object(found, goods)
    shown = [part for part in _BRACKETED.findall(text) if simplified(part).startswith(_KNOWN_STARTS)]
    if shown:
        return _one_of(shown, goods), _BRACKETED.sub(lambda found: "" if found[1] in shown else found[0], text).strip()
    if not talk or not text.strip():
        raise InvalidAction("No action was found in your answer.", "unreadable")
    return "pass", text


def _action(text: str, goods: Sequence[str]) -> str | Offer | None:
    short = simplified(text)
    return _WORDS.get(short) or parsed_offer(short, goods)


def _one_of(shown: Sequence[str], goods: Sequence[str]) -> str | Offer:
    """Return the one action in brackets; to deny and to offer something else is to offer it."""
    actions = [_action(part, goods) for part in shown]
    if None in actions:
        raise InvalidAction(
            f"Your offer could not be read: write it as [Offer: 2 {goods[0]} -> 1 {goods[1]}].", "unreadable"
        )
    different = set(actions)
    if len(different) > 1:
        different -= {"deny"}
    if len(different) > 1:
        raise InvalidAction("Your answer names more than one action: answer with one.", "unreadable")
    (action,) = different
    assert action is not None
    return action


def _from_object(found: Mapping[str, Any], goods: Sequence[str]) -> tuple[str | Offer, str]:
    """Return the action of a JSON answer: ``{"action": "...", "message": "..."}``."""
    message = found.get("message", "")
    named = next((found[key] for key in ("action", "offer", "decision") if isinstance(found.get(key), str)), None)
    action = None if named is None else _action(named, goods)
    if action is None:
        raise InvalidAction('No action was found in your answer: JSON needs {"action": "..."}.', "unreadable")
    return action, message if isinstance(message, str) else ""
