"""The rules of Werewolf as pure functions: what a night does, the exile, the next speaker, the winner."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from turngym.envs.werewolf.roles import VILLAGE, WEREWOLF, WEREWOLVES

ABSTAIN = NOBODY = -1
"""A ballot for nobody; a night or a vote without a victim."""
_MENTION = re.compile(r"player[_ ]?([0-9]{1,2})(?![0-9])", re.IGNORECASE)


def winner(roles: Sequence[str], living: Sequence[int]) -> str:
    """Return the team that has won, empty while the game continues.

    The village wins when no werewolf lives, the werewolves as soon as they are as many as the others.

    >>> winner(["werewolf", "seer", "villager"], [0, 2]), winner(["werewolf", "seer", "villager"], [0, 1, 2])
    ('werewolves', '')
    """
    wolves = 0
    for seat in living:
        if roles[seat] == WEREWOLF:
            wolves += 1
    if not wolves:
        return VILLAGE
    return WEREWOLVES if 2 * wolves >= len(living) else ""


def victim_of(target: int, protected: int) -> int:
    """Return who dies in a night, NOBODY if the doctor protected the target.

    >>> victim_of(4, 4), victim_of(4, NOBODY)
    (-1, 4)
    """
    return NOBODY if target == protected else target


def tally(ballots: Mapping[int, int]) -> dict[int, int]:
    """Return how many votes each seat got, in seat order, without those that got none.

    >>> tally({0: 5, 1: 0, 2: 0, 4: ABSTAIN})
    {0: 2, 5: 1}
    """
    counts: dict[int, int] = {}
    for target in ballots.values():
        if target != ABSTAIN:
            counts[target] = counts.get(target, 0) + 1
    return {seat: counts[seat] for seat in sorted(counts)}


def leaders(counts: Mapping[int, int]) -> tuple[int, ...]:
    """Return the seats with the most votes, in seat order; none if nobody got any.

    >>> leaders({0: 3, 2: 1, 5: 3}), leaders({})
    ((0, 5), ())
    """
    if not counts:
        return ()
    most = max(counts.values())
    return tuple([seat for seat, count in counts.items() if count == most])


def has_majority(votes: int, num_living: int) -> bool:
    """Return whether so many votes are more than half of the living.

    >>> has_majority(4, 7), has_majority(3, 6)
    (True, False)
    """
    return 2 * votes > num_living


def mentioned(speech: str) -> set[int]:
    """Return the seats that a speech names.

    >>> sorted(mentioned("Player_3 and player 12, not player_100."))
    [3, 12]
    """
    return {int(number) for number in _MENTION.findall(speech)}


def next_speaker(
    bids: Mapping[int, int], last_speech: str, spoken: Mapping[int, int], generator: np.random.Generator
) -> int:
    """Return who speaks: the highest bid; among equals who was named last, then who spoke least, then a drawn one.

    Args:
        bids: Bid of every living seat, from 0 to 4.
        last_speech: Last utterance of the day, empty if there is none.
        spoken: Number of speeches of each seat today.
        generator: Breaks remaining ties.

    Returns:
        A seat, or NOBODY if all bids are 0.
    """
    highest = max(bids.values())
    if highest == 0:
        return NOBODY
    best = [seat for seat, bid in bids.items() if bid == highest]
    if len(best) > 1:
        named = mentioned(last_speech)
        best = [seat for seat in best if seat in named] or best
        least = min(spoken.get(seat, 0) for seat in best)
        best = [seat for seat in best if spoken.get(seat, 0) == least]
    return best[0] if len(best) == 1 else best[int(generator.integers(len(best)))]
