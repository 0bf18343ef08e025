"""Other roles that look the same to a seat: used to find leaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from turngym.envs.avalon.roles import ASSASSIN, EVIL, sight, team_of

_TRIES = 60


class Quest(NamedTuple):
    """A quest that is over.

    Args:
        team: Its seats, in ascending order.
        fails: The seats that played fail, of which others read only how many there are.
        succeeded: Whether it succeeded.
    """

    team: tuple[int, ...]
    fails: tuple[int, ...]
    succeeded: bool


class Past(NamedTuple):
    """What has happened.

    Args:
        roles: Role of every seat.
        quests: The quests that are over.
        silent: Seats that have forfeited.
        is_open: Whether evil seats know all evil seats, since the assassin is to name Merlin.
    """

    roles: Sequence[str]
    quests: Sequence[Quest]
    silent: Sequence[int]
    is_open: bool


def other_world(past: Past, seat: int, generator: np.random.Generator) -> tuple[list[str], list[Quest]] | None:
    """Return roles, and who played fail, that a seat cannot tell from the true ones; None if none were found.

    Roles move among the seats that it sees as one kind, and among those that it does not see.

    Args:
        past: The true world.
        seat: Seat whose knowledge counts: its own role, cards and lines.
        generator: Samples the world.
    """
    roles = past.roles
    seen = set(sight(seat, roles))
    if past.is_open and team_of(roles[seat]) == EVIL:
        seen = {other for other, role in enumerate(roles) if team_of(role) == EVIL}
    groups = [[other for other in range(len(roles)) if other != seat and (other in seen) == side] for side in (0, 1)]
    for _ in range(_TRIES):
        found = list(roles)
        for group in groups:
            for other, card in zip(group, generator.permutation(len(group)).tolist(), strict=True):
                found[other] = roles[group[card]]
        if found == list(roles) or (past.is_open and found.index(ASSASSIN) in past.silent):
            continue
        if len({team_of(role) for other, role in enumerate(found) if other not in past.silent}) < 2:
            continue  # the game would be over
        quests = [_replayed(quest, found, seat, past.silent, generator) for quest in past.quests]
        if None not in quests:
            return found, [quest for quest in quests if quest is not None]
    return None


def _replayed(
    quest: Quest, roles: Sequence[str], seat: int, silent: Sequence[int], generator: np.random.Generator
) -> Quest | None:
    """Return a quest with as many fails by these roles and the same card of the seat; None if too few can fail."""
    own = [seat] if seat in quest.fails else []
    number = len(quest.fails) - len(own)
    able = [other for other in quest.team if other not in (seat, *silent) and team_of(roles[other]) == EVIL]
    if len(able) < number:
        return None
    picked = generator.permutation(len(able))[:number].tolist()
    return quest._replace(fails=tuple(sorted([*own, *[able[place] for place in picked]])))
