"""Parses answers of Werewolf players: a JSON object, the bracket form, or the bare action.

The last action in a text counts, so that a player may think first. Speech is taken from its field alone: what a player
thinks never reaches the others.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.werewolf.roles import MOST

VERBS = ("kill", "see", "save", "vote", "abstain", "say", "bid")
_AIMED = ("kill", "see", "save", "vote")
_READ, _TRIES, _END = 10_000, 100, 500  # adversarial texts must be cheap to parse
"""How much of the end is searched, how many broken objects are tried there, and how much is searched after those."""
_VERB = rf"\s*({'|'.join(VERBS)})(?![a-z0-9_])"
_ACTION = re.compile(_VERB, re.IGNORECASE)
_START = re.compile(rf"\{{(?=\s*\")|\[{_VERB}", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_TARGET = re.compile(r"[\s:]*(?:for\s+)?(?:player[\s_]*)?([0-9]{1,3})[\s.]*", re.IGNORECASE)
_BID = re.compile(r"[\s:]*(-?[0-9]{1,3})[\s.]*")
_DECODER = json.JSONDecoder()
UNREADABLE = (
    "No action was found. Answer with the action in square brackets, or as a JSON object with the key "
    '"action", at the end of your text.'
)


class Move(NamedTuple):
    """An action as it was read, legal or not.

    Args:
        verb: One of :data:`VERBS`.
        number: Seat that is named or bid that is made; -1 where the verb takes none.
        speech: Utterance as written.
    """

    verb: str
    number: int = -1
    speech: str = ""


PLAIN: dict[str, Move] = {
    **{f"{verb} player_{seat}": Move(verb, seat) for verb in _AIMED for seat in range(MOST)},
    **{f"bid {amount}": Move("bid", amount) for amount in range(5)},
    "abstain": Move("abstain"),
    "say": Move("say"),
}
"""Canonical text -> action, for all canonical texts but speech."""


def read_move(text: str) -> Move:
    r"""Return the action that a text means.

    Args:
        text: Any text at all.

    Raises:
        InvalidAction: None was found, or the last one names nobody or no number.

    >>> read_move('I think [kill 2], no: {"action": "kill", "target": "Player 4"}')
    Move(verb='kill', number=4, speech='')
    >>> read_move("[Vote PLAYER_12]").number
    12
    >>> read_move('{"reasoning": "I am the wolf", "action": "say", "text": "Good morning."}').speech
    'Good morning.'
    """
    move = PLAIN.get(text)
    if move is not None:
        return move
    text = THINKING.without(text, _marked_spans)
    if text[:4].lower() == "say ":
        return Move("say", speech=text[4:])
    text = text[-_READ:]
    last = _last_marked(text)
    if last is None:
        bare = _ACTION.match(text)
        if bare is None:
            raise InvalidAction(UNREADABLE, "unreadable")
        last = bare[1], text[bare.end() :]
    return _move(last[0].lower(), last[1])


def _last_marked(text: str) -> tuple[str, Any] | None:
    """Return verb and rest of the last action in brackets or in an object; one inside another is not an action."""
    last = deque(_marked(text), maxlen=1)
    return last[0][2] if last else None


def _marked_spans(text: str) -> Iterator[tuple[int, int]]:
    return ((start, end) for start, end, _ in _marked(text))


def _marked(text: str) -> Iterator[tuple[int, int, tuple[str, Any]]]:
    """Yield start, end, and verb with rest of every action in brackets or in an object."""
    closing = _matching(text)
    position = tries = 0
    while (start := _START.search(text, position)) is not None:
        position = start.end()
        if start[1] is None:
            try:
                found, end = _DECODER.raw_decode(text, start.start())
            except (ValueError, RecursionError):
                tries += 1
                if tries == _TRIES:
                    position = max(position, len(text) - _END)
                continue
            position = end
            action = found.get("action")
            verb = _ACTION.match(action) if isinstance(action, str) else None
            if verb is not None:
                yield start.start(), end, (verb[1], _argument(found, verb[1].lower(), action[verb.end() :]))
        elif start.start() in closing:
            position = closing[start.start()]
            yield start.start(), position, (start[1], text[start.end() : position])


def _matching(text: str) -> dict[int, int]:
    """Return position of every opening square bracket -> position of the one that closes it."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for bracket in _BRACKET.finditer(text):
        if bracket[0] == "[":
            opened.append(bracket.start())
        elif opened:
            closing[opened.pop()] = bracket.start()
    return closing


def _argument(found: Mapping[str, Any], verb: str, rest: str) -> Any:
    """Return what an object says besides its verb: the rest of the action's own text, or the field for it."""
    if rest.strip():
        return rest
    fields = {"say": ("text", "message"), "bid": ("amount", "bid")}.get(verb, ("target", "player"))
    return next((found[field] for field in fields if field in found), "")


def _move(verb: str, rest: Any) -> Move:
    if verb == "abstain":
        return Move(verb)
    if isinstance(rest, int) and not isinstance(rest, bool):
        rest = str(rest) if abs(rest) < 1000 else ""
    if not isinstance(rest, str):
        rest = ""
    if verb == "say":
        return Move(verb, speech=rest.removeprefix(":"))
    number = (_BID if verb == "bid" else _TARGET).fullmatch(rest)
    if number is None:
        what = "a number from 0 to 4" if verb == "bid" else "the name of one player"
        raise InvalidAction(f"'{verb}' needs {what} after it.", "unreadable")
    return Move(verb, int(number[1]))
