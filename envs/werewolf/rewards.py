"""Rewards of Werewolf: by team, shaped by ballots, or on the scale of LSPO (Xu et al., ICML 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turngym.envs.werewolf.roles import WEREWOLF, team_of


class Scale(NamedTuple):
    """The numbers of one reward variant.

    Args:
        win: To each seat of the winning team, dead ones included; its negative to the others. Nothing in a draw.
        is_shared: Whether each team shares ``win``, so that the game is zero-sum.
        ballot: To a seat of the village for each ballot against a werewolf; its negative for one against another.
        alive: To each seat alive at the end of a day, or at the end of a game that ends in the night.
        exiled: To the seat that is exiled.
        exile: To the other living seats when an opponent is exiled; its negative when one of their own is.
    """

    win: float
    is_shared: bool = False
    ballot: float = 0.0
    alive: float = 0.0
    exiled: float = 0.0
    exile: float = 0.0


SCALES = {
    "team": Scale(1.0),
    "zero_sum": Scale(1.0, is_shared=True),
    "shaped": Scale(1.0, ballot=0.1),
    "lspo": Scale(300.0, ballot=20.0, alive=5.0, exiled=-10.0, exile=5.0),
}


def pay_result(due: list[float], scale: Scale, roles: Sequence[str], winner: str) -> None:
    """Add the rewards of the game's end to ``due``, [num_seats]; nothing if ``winner`` is empty.

    >>> due = [0.0, 0.0, 0.0]
    >>> pay_result(due, SCALES["zero_sum"], ["werewolf", "seer", "villager"], "village")
    >>> due
    [-1.0, 0.5, 0.5]
    """
    if not winner:
        return
    teams = [team_of(role) for role in roles]
    for seat, team in enumerate(teams):
        share = scale.win / teams.count(team) if scale.is_shared else scale.win
        due[seat] += share if team == winner else -share


def forfeit_reward(scale: Scale, roles: Sequence[str], seat: int, days: int) -> float:
    """Return what a seat gets that forfeits: no more than the worst that the days left could bring.

    >>> forfeit_reward(SCALES["team"], ["werewolf", "seer", "villager"], 1, 10)
    -1.0
    >>> forfeit_reward(SCALES["shaped"], ["werewolf", "seer", "villager"], 1, 2)
    -1.4
    """
    teams = [team_of(role) for role in roles]
    win = scale.win / teams.count(teams[seat]) if scale.is_shared else scale.win
    return -win + scale.exiled - days * (2 * scale.ballot + scale.exile)  # at most two votes a day, with a run-off


def pay_ballots(due: list[float], scale: Scale, roles: Sequence[str], ballots: Mapping[int, int]) -> None:
    """Add the village seats' rewards for the ballots of one vote; abstentions (-1) earn nothing."""
    if not scale.ballot:
        return
    for seat, target in ballots.items():
        if target >= 0 and roles[seat] != WEREWOLF:
            due[seat] += scale.ballot if roles[target] == WEREWOLF else -scale.ballot


def pay_exile(due: list[float], scale: Scale, roles: Sequence[str], living: Sequence[int], exiled: int) -> None:
    """Add the rewards for an exile to the seats that were alive just before it."""
    if not scale.exile and not scale.exiled:
        return
    team = team_of(roles[exiled])
    for seat in living:
        if seat == exiled:
            due[seat] += scale.exiled
        else:
            due[seat] += -scale.exile if team_of(roles[seat]) == team else scale.exile


def pay_survivors(due: list[float], scale: Scale, living: Sequence[int]) -> None:
    """Add the rewards for being alive."""
    if scale.alive:
        for seat in living:
            due[seat] += scale.alive
