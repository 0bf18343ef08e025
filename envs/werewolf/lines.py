"""The lines that seats of Werewolf get to read: one function per event, no decision anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from turngym.envs.werewolf.roles import MOST, WEREWOLF, team_of
from turngym.envs.werewolf.rules import ABSTAIN, NOBODY

NAMES = tuple(f"player_{seat}" for seat in range(MOST))
"""Names of all seats that there can be."""


def names(seats: Iterable[int]) -> str:
    """Return seats with commas between them.

    >>> names([0, 3])
    'player_0, player_3'
    """
    return ", ".join([NAMES[seat] for seat in seats])


def dealt(seat: int, roles: Sequence[str]) -> str:
    """Return what a seat reads about its own role, and a werewolf about the others.

    >>> dealt(0, ["werewolf", "seer", "werewolf"])
    'You are player_0. Role: werewolf. Teammates: player_2.'
    """
    line = f"You are {NAMES[seat]}. Role: {roles[seat]}."
    if roles[seat] != WEREWOLF:
        return line
    others = [other for other, role in enumerate(roles) if role == WEREWOLF and other != seat]
    return f"{line} Teammates: {names(others) or 'none'}."


def night(day: int, living: Sequence[int]) -> str:
    """Return the public line at the start of a night."""
    return f"Night {day}. Alive: {names(living)}."


def proposal(seat: int, target: int) -> str:
    """Return what werewolves read of one werewolf's choice."""
    return f"[wolves] {NAMES[seat]} proposes {NAMES[target]}."


def target(seat: int) -> str:
    """Return what werewolves read of their joint choice."""
    return f"[wolves] Target: {NAMES[seat]}."


def seen(seat: int, is_werewolf: bool) -> str:
    """Return what the seer reads; nothing was seen if ``seat`` is NOBODY."""
    if seat == NOBODY:
        return "[seer] You see nobody."
    return f"[seer] {NAMES[seat]} is {'' if is_werewolf else 'not '}a werewolf."


def protected(seat: int) -> str:
    """Return what the doctor reads; nobody is protected if ``seat`` is NOBODY."""
    return f"[doctor] You protect {'nobody' if seat == NOBODY else NAMES[seat]}."


def morning(day: int, victim: int, revealed: str) -> str:
    """Return the public line at the start of a day.

    >>> morning(2, 1, " Role: seer.")
    'Day 2. player_1 was killed in the night. Role: seer.'
    """
    return f"Day {day}. {'Nobody' if victim == NOBODY else NAMES[victim]} was killed in the night.{revealed}"


def revealed(role: str, how_much: str) -> str:
    """Return what is added to the line of somebody's end: nothing, the team, or the role."""
    if how_much == "none":
        return ""
    return f" Role: {role}." if how_much == "role" else f" Team: {team_of(role)}."


def speech(day: int, seat: int, said: str) -> str:
    """Return the public line of a speech: the words always stand behind the speaker's name."""
    return f"[Day {day}] {NAMES[seat]}: {said}" if said else f"[Day {day}] {NAMES[seat]} says nothing."


def own_bid(amount: int) -> str:
    """Return what its own seat reads bid."""
    return f"[bid] You bid {amount}."


def ballot(seat: int, target: int) -> str:
    """Return the public line of one ballot, where votes are cast one after another."""
    return f"Vote: {NAMES[seat]} -> {'abstain' if target == ABSTAIN else NAMES[target]}."


def ballots(cast: Mapping[int, int]) -> str:
    """Return the public line of all ballots, where votes are cast at once."""
    parts = [f"{NAMES[seat]} -> {'abstain' if to == ABSTAIN else NAMES[to]}" for seat, to in cast.items()]
    return f"Votes: {'; '.join(parts)}."


def tallied(counts: Mapping[int, int], exiled: int, revealed: str) -> str:
    """Return the public line of the result of a vote.

    >>> tallied({0: 3, 5: 3}, NOBODY, "")
    'Tally: player_0 3, player_5 3. Nobody was eliminated.'
    """
    shown = ", ".join([f"{NAMES[seat]} {count}" for seat, count in counts.items()]) or "no votes"
    return f"Tally: {shown}. {'Nobody' if exiled == NOBODY else NAMES[exiled]} was eliminated.{revealed}"


def run_off(counts: Mapping[int, int], candidates: Sequence[int]) -> str:
    """Return the public line of a tie that another vote decides."""
    shown = ", ".join([f"{NAMES[seat]} {count}" for seat, count in counts.items()])
    return f"Tally: {shown}. Run-off between {names(candidates)}."


def game_over(winner: str, roles: Sequence[str]) -> str:
    """Return the last line, which shows every role."""
    shown = ", ".join([f"{NAMES[seat]} {role}" for seat, role in enumerate(roles)])
    return f"Game over. Winner: {winner or 'nobody'}. Roles: {shown}."
