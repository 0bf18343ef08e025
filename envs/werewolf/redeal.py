"""Other worlds that look the same: roles and deeds by night that fit everything one seat has read.

Used to find leaks: whatever a seat is shown must be equal in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from turngym.envs.werewolf.roles import DOCTOR, SEER, WEREWOLF, team_of
from turngym.envs.werewolf.rules import NOBODY, winner

_TRIES = 100
Night = tuple[int, int, int]


class Past(NamedTuple):
    """History of a running game.

    Args:
        roles: Role of every seat.
        nights: Target, protected seat and victim of every night.
        exiles: Seat exiled on every day, NOBODY if none.
        checks: Whom the seer has looked at.
        doctor_self: Whether the doctor may protect itself.
        doctor_repeat: Whether the doctor may protect the same seat in two nights running.
        reveal: What is shown of the dead.
    """

    roles: Sequence[str]
    nights: Sequence[Night]
    exiles: Sequence[int]
    checks: Sequence[int]
    doctor_self: bool
    doctor_repeat: bool
    reveal: str


class World(NamedTuple):
    """Roles, and what was done in every night."""

    roles: list[str]
    nights: list[Night]


def other_world(past: Past, seat: int, generator: np.random.Generator) -> World | None:
    """Return a world with other roles that a seat cannot tell from the true one; None if none was found.

    Args:
        past: The true world.
        seat: Seat whose knowledge counts: its own lines and the public ones.
        generator: Samples the world.
    """
    free = _unknown(past, seat)
    cards = [past.roles[other] for other in free]
    for _ in range(_TRIES):
        order = generator.permutation(len(free)).tolist()
        roles = list(past.roles)
        for other, card in zip(free, order, strict=True):
            roles[other] = cards[card]
        if roles == list(past.roles):
            continue
        nights = _retold(past, roles, seat, generator)
        if nights is not None:
            return World(roles, nights)
    return None


def _unknown(past: Past, seat: int) -> list[int]:
    """Return the seats whose roles a seat has not been told."""
    known = {seat}
    if past.roles[seat] == SEER:
        known.update([other for other in past.checks if past.roles[other] == WEREWOLF])
    if past.roles[seat] == WEREWOLF:
        known.update([other for other, role in enumerate(past.roles) if role == WEREWOLF])
    if past.reveal == "role":
        known.update(past.exiles, [victim for *_, victim in past.nights])
    return [other for other in range(len(past.roles)) if other not in known]


def _retold(past: Past, roles: Sequence[str], seat: int, generator: np.random.Generator) -> list[Night] | None:
    """Return nights in which these roles lead to what the seat has read; None if they cannot."""
    if roles[seat] == SEER and any((roles[c] == WEREWOLF) != (past.roles[c] == WEREWOLF) for c in past.checks):
        return None
    living = list(range(len(roles)))
    nights: list[Night] = []
    for index, true in enumerate(past.nights):
        night = _night(past, roles, seat, living, nights[-1][1] if nights else NOBODY, true, generator)
        if night is None:
            return None
        nights.append(night)
        gone = [night[2], *past.exiles[index : index + 1]]
        for dead in gone:
            if dead == NOBODY:
                continue
            living.remove(dead)
            if past.reveal == "team" and team_of(roles[dead]) != team_of(past.roles[dead]):
                return None
            if winner(roles, living):
                return None
    return nights


def _night(
    past: Past,
    roles: Sequence[str],
    seat: int,
    living: Sequence[int],
    last_protected: int,
    true: Night,
    generator: np.random.Generator,
) -> Night | None:
    """Return what was done in one night, None if these roles cannot have done it."""
    target, protected, victim = true
    doctor = next((other for other in living if roles[other] == DOCTOR), NOBODY)
    allowed = [
        other
        for other in living
        if doctor != NOBODY
        and (past.doctor_self or other != doctor)
        and (past.doctor_repeat or other != last_protected)
    ]
    if seat in living and roles[seat] == WEREWOLF:
        targets = [target]
    else:
        targets = [other for other in living if roles[other] != WEREWOLF]
    if seat in living and roles[seat] == DOCTOR:
        allowed = [protected]
    if victim == NOBODY:
        both = [other for other in targets if other in allowed]
        if not both:
            return None
        saved = both[int(generator.integers(len(both)))]
        return saved, saved, NOBODY
    if victim not in targets:
        return None
    allowed = [other for other in allowed if other != victim] or [NOBODY]
    return victim, allowed[int(generator.integers(len(allowed)))], victim
