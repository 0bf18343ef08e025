"""Knowledge of a rule-based player from the lines of a game: facts parsed with a fixed grammar, and counts.

Speech counts only where it uses one of four phrases: ``I am the seer``, ``player_X is a wolf``, ``player_X is clear``
and ``I suspect player_X``. Everything else is noise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["pack", "living", "day", "seen", "tally", "said"]
_NAME = re.compile(r"player_([0-9]+)")
_SPEECH = re.compile(r"\[Day [0-9]+\] player_([0-9]+): (.*)")
_PHRASE = re.compile(
    r"(I am the seer)|player_([0-9]{1,2}) is (a wolf|clear)|I suspect player_([0-9]{1,2})", re.IGNORECASE
)
CLAIM = "I am the seer."
"""How a seat says that it is the seer."""


class Fact(NamedTuple):
    """Content of one line.

    Args:
        kind: ``pack`` (a werewolf reads its own), ``living`` (at the start of a night), ``day`` (a victim), ``seen``
            (the seer reads), ``tally`` or ``said``.
        seats: Whom it is about: the pack, the living, the dead, the seat that was seen, those in a run-off, or those
            that are called wolves or suspected.
        seat: Seat that died in the vote, or that speaks; -1 for nobody.
        votes: Votes by seat.
        calls: Claims of a seer: True for a wolf, False for a clear seat.
        is_claim: Whether a speaker claims to be the seer, or the seat that was seen is a werewolf.
    """

    kind: Kind
    seats: tuple[int, ...] = ()
    seat: int = -1
    votes: Mapping[int, int] = {}
    calls: Mapping[int, bool] = {}
    is_claim: bool = False


@lru_cache(maxsize=1 << 13)
def fact(line: str) -> Fact | None:
    """Return what a line says, the same for every reader; None if it says nothing that counts.

    >>> fact("[Day 1] player_1: I am the seer. player_0 is a wolf.").calls
    {0: True}
    >>> fact("Day 2. player_1 was killed in the night.").seats
    (1,)
    """
    speech = _SPEECH.match(line)
    if speech is not None:
        return _said(int(speech[1]), speech[2])
    named = tuple([int(number) for number in _NAME.findall(line)])
    if line.startswith("You are "):
        return Fact("pack", named) if ". Role: werewolf." in line else None
    if line.startswith("Night "):
        return Fact("living", named)
    if line.startswith("Day "):
        return Fact("day", named[:1])
    if line.startswith("[seer] ") and named:
        return Fact("seen", named, is_claim=line.endswith(" is a werewolf."))
    return _counted(line) if line.startswith("Tally: ") else None


def _counted(line: str) -> Fact:
    counted, _, result = line.removeprefix("Tally: ").partition(". ")
    votes = {int(seat): int(count) for seat, count in re.findall(r"player_([0-9]+) ([0-9]+)", counted)}
    in_result = tuple([int(number) for number in _NAME.findall(result)])
    if result.startswith("Run-off"):
        return Fact("tally", in_result, votes=votes)
    return Fact("tally", seat=in_result[0] if in_result else -1, votes=votes)


def _said(speaker: int, words: str) -> Fact | None:
    calls: dict[int, bool] = {}
    accused: list[int] = []
    is_claim = False
    for phrase in _PHRASE.finditer(words):
        if phrase[1] is not None:
            is_claim = True
        elif phrase[2] is None:
            accused.append(int(phrase[4]))
        else:
            calls[int(phrase[2])] = is_wolf = phrase[3].lower() != "clear"
            if is_wolf:
                accused.append(int(phrase[2]))
    if not (is_claim or calls or accused):
        return None
    return Fact("said", tuple(accused), speaker, calls=calls, is_claim=is_claim)
