"""Roles of Werewolf, the two teams, and who is dealt what."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.errors import ConfigError, nearest

WEREWOLF, SEER, DOCTOR, VILLAGER = ROLES = ("werewolf", "seer", "doctor", "villager")
WEREWOLVES, VILLAGE = TEAMS = ("werewolves", "village")
FEWEST, MOST, USUAL = 5, 15, 7
"""The smallest, the largest and the usual number of seats."""


def team_of(role: str) -> str:
    """Return the team that a role plays for.

    >>> team_of("seer"), team_of("werewolf")
    ('village', 'werewolves')
    """
    return WEREWOLVES if role == WEREWOLF else VILLAGE


def seats_of(team: str, roles: Sequence[str]) -> tuple[int, ...]:
    """Return the seats of a team.

    >>> seats_of("village", ["werewolf", "seer", "villager"])
    (1, 2)
    """
    return tuple([seat for seat, role in enumerate(roles) if team_of(role) == team])


def usual_roles(num_seats: int) -> tuple[str, ...]:
    """Return the roles of a table: a third werewolves, one seer, one doctor, the rest villagers.

    >>> usual_roles(7)
    ('werewolf', 'werewolf', 'seer', 'doctor', 'villager', 'villager', 'villager')
    >>> [usual_roles(n).count("werewolf") for n in (5, 6, 8, 9, 15)]
    [1, 2, 2, 3, 5]
    """
    wolves = num_seats // 3
    return (WEREWOLF,) * wolves + (SEER, DOCTOR) + (VILLAGER,) * (num_seats - wolves - 2)


def checked_roles(num_seats: int | None, roles: Sequence[str] | None) -> tuple[str, ...]:
    """Return the roles that a game is played with, one per seat, in an order that says nothing about seats.

    Args:
        num_seats: How many seats there are; None for as many as there are roles, or 7.
        roles: The roles in any order; None for :func:`usual_roles`.

    Raises:
        ConfigError: Too few or too many seats, an unknown role, two of a kind of which there is one, or a game that
            would be over before it starts.
    """
    if num_seats is None:
        num_seats = USUAL if roles is None else len(roles)
    if isinstance(num_seats, bool) or not isinstance(num_seats, int) or not FEWEST <= num_seats <= MOST:
        raise ConfigError(f"werewolf needs {FEWEST} to {MOST} seats, got {num_seats!r}.")
    if roles is None:
        return usual_roles(num_seats)
    if isinstance(roles, str) or len(roles) != num_seats:
        raise ConfigError(f"werewolf with {num_seats} seats needs a list of {num_seats} roles, got {roles!r}.")
    for role in roles:
        if role not in ROLES:
            raise ConfigError(f"werewolf has no role {role!r}. {nearest(str(role), ROLES)}")
    for role in (SEER, DOCTOR):
        if roles.count(role) > 1:
            raise ConfigError(f"werewolf has at most one {role}, got {roles.count(role)}: make the others villagers.")
    wolves = roles.count(WEREWOLF)
    if not 0 < wolves < num_seats - wolves:
        raise ConfigError(f"werewolf needs at least one werewolf and more others than werewolves, got {list(roles)}.")
    return tuple(sorted(roles, key=ROLES.index))
