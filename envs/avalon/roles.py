"""Roles of Avalon, who sees whom, and the sizes of teams (The Resistance: Avalon, Indie Boards and Cards, 2012)."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.errors import ConfigError, nearest

MERLIN, PERCIVAL, SERVANT = "merlin", "percival", "servant"
ASSASSIN, MORGANA, MORDRED, OBERON, MINION = "assassin", "morgana", "mordred", "oberon", "minion"
ROLES = (MERLIN, PERCIVAL, SERVANT, ASSASSIN, MORGANA, MORDRED, OBERON, MINION)
GOOD, EVIL = "good", "evil"
FEWEST, MOST, USUAL = 5, 10, 5
"""The smallest, the largest and the usual number of seats."""

TEAM_SIZES = {
    5: (2, 3, 2, 3, 3),
    6: (2, 3, 4, 3, 4),
    7: (2, 3, 3, 4, 4),
    8: (3, 4, 4, 5, 5),
    9: (3, 4, 4, 5, 5),
    10: (3, 4, 4, 5, 5),
}
"""Seats -> size of the team of each quest."""
NUM_EVIL = {5: 2, 6: 2, 7: 3, 8: 3, 9: 3, 10: 4}
"""Seats -> how many of them are evil."""

_USUAL_EVIL = {
    5: (ASSASSIN, MORGANA),
    6: (ASSASSIN, MORGANA),
    7: (ASSASSIN, MORGANA, OBERON),
    8: (ASSASSIN, MORGANA, MINION),
    9: (ASSASSIN, MORGANA, MORDRED),
    10: (ASSASSIN, MORGANA, MORDRED, OBERON),
}
_ONE_AT_MOST = (PERCIVAL, MORGANA, MORDRED, OBERON)


def team_of(role: str) -> str:
    """Return the side of a role.

    >>> team_of("percival"), team_of("oberon")
    ('good', 'evil')
    """
    return GOOD if role in (MERLIN, PERCIVAL, SERVANT) else EVIL


def fails_needed(num_seats: int, quest: int) -> int:
    """Return how many fails it takes for a quest (from 0) to fail: two in the fourth with seven seats or more.

    >>> fails_needed(7, 3), fails_needed(7, 4), fails_needed(5, 3)
    (2, 1, 1)
    """
    return 2 if num_seats >= 7 and quest == 3 else 1


def usual_roles(num_seats: int) -> tuple[str, ...]:
    """Return the roles of a table, Merlin and Percival among the good ones.

    >>> usual_roles(5)
    ('merlin', 'percival', 'servant', 'assassin', 'morgana')
    """
    evil = _USUAL_EVIL[num_seats]
    return (MERLIN, PERCIVAL, *[SERVANT] * (num_seats - len(evil) - 2), *evil)


def checked_roles(num_seats: int | None, roles: Sequence[str] | None) -> tuple[str, ...]:
    """Return the roles that a game is played with, one per seat, in an order that says nothing about seats.

    Args:
        num_seats: How many seats there are; None for as many as there are roles, or 5.
        roles: The roles in any order; None for :func:`usual_roles`.

    Raises:
        ConfigError: Too few or too many seats, an unknown role, a role that is missing or twice, or a number of evil
            seats that does not fit.
    """
    if num_seats is None:
        num_seats = USUAL if roles is None else len(roles)
    if isinstance(num_seats, bool) or not isinstance(num_seats, int) or not FEWEST <= num_seats <= MOST:
        raise ConfigError(f"avalon needs {FEWEST} to {MOST} seats, got {num_seats!r}.")
    if roles is None:
        return usual_roles(num_seats)
    if isinstance(roles, str) or len(roles) != num_seats:
        raise ConfigError(f"avalon with {num_seats} seats needs a list of {num_seats} roles, got {roles!r:.200}.")
    for role in roles:
        if role not in ROLES:
            raise ConfigError(f"avalon has no role {role!r:.80}. {nearest(str(role), ROLES)}")
    for role in (MERLIN, ASSASSIN):
        if list(roles).count(role) != 1:
            raise ConfigError(f"avalon needs one {role}, got {list(roles)}.")
    for role in _ONE_AT_MOST:
        if list(roles).count(role) > 1:
            raise ConfigError(f"avalon has one {role} at most, got {list(roles)}.")
    evil, wanted = [team_of(role) for role in roles].count(EVIL), NUM_EVIL[num_seats]
    if evil != wanted:
        raise ConfigError(f"avalon with {num_seats} seats has {wanted} evil ones, got {evil}: {list(roles)}.")
    return tuple(sorted(roles, key=ROLES.index))


def sight(seat: int, roles: Sequence[str]) -> tuple[int, ...]:
    """Return the seats that a seat is shown at the beginning.

    Merlin sees evil but Mordred; Percival sees Merlin and Morgana, not which is which; evil seats see each other,
    Oberon excepted, who neither sees nor is seen by them; the others see nobody.

    >>> roles = ["merlin", "assassin", "servant", "percival", "morgana", "mordred", "oberon"]
    >>> [sight(seat, roles) for seat in range(7)]
    [(1, 4, 6), (4, 5), (), (0, 4), (1, 5), (1, 4), ()]
    """
    role = roles[seat]
    if role == MERLIN:
        seen = {ASSASSIN, MORGANA, MINION, OBERON}
    elif role == PERCIVAL:
        seen = {MERLIN, MORGANA}
    else:
        seen = {ASSASSIN, MORGANA, MORDRED, MINION} if team_of(role) == EVIL and role != OBERON else set()
    return tuple([other for other, shown in enumerate(roles) if other != seat and shown in seen])


def dealt(seat: int, roles: Sequence[str]) -> str:
    """Return the line that tells a seat its role and what it sees.

    >>> dealt(1, ["merlin", "percival", "servant", "assassin", "morgana"])
    'You are player_1, percival, and good. One is Merlin, another Morgana: player_0, player_4.'
    >>> dealt(2, ["merlin", "percival", "servant", "assassin", "morgana"])
    'You are player_2, servant, and good. You are shown nobody.'
    """
    role, seen = roles[seat], ", ".join([f"player_{other}" for other in sight(seat, roles)])
    words = {MERLIN: "You see as evil", PERCIVAL: "One is Merlin, another Morgana"}.get(role, "Evil with you are")
    if role == PERCIVAL and MORGANA not in roles:
        words = "Merlin is"
    shown = f"{words}: {seen}." if seen else "You are shown nobody."
    return f"You are player_{seat}, {role}, and {team_of(role)}. {shown}"
