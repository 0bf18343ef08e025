"""Ratings against the whole field of a tournament, for players that beat one another in circles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.benchmarks.statistics.alpha_rank import alpha_rank
from turngym.benchmarks.statistics.nash_averaging import nash_average

FEWEST, MOST = 3, 60
"""Numbers of players for which these ratings say more than the points, and are quickly computed."""


class FieldRating(NamedTuple):
    """Rating of a player against the field.

    Args:
        player: Its name.
        skill: Mean points above one half against the Nash equilibrium of the players.
        weight: Probability of the player in that equilibrium.
        share: Share of time in alpha-rank.
    """

    player: str
    skill: float
    weight: float
    share: float


def field_ratings(found: Mapping[str, Any]) -> list[FieldRating]:
    """Return the ratings of a tournament's results, the best first; empty unless 3 to 60 players all met.

    They are computed from the points alone, every pair of sides weighing the same, and have no intervals.

    >>> cell = {"side": "", "opponent_side": ""}
    >>> beats = [("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")]
    >>> cells = [{**cell, "player": a, "opponent": b, "points": {"value": 1.0}} for a, b in beats]
    >>> cells += [{**cell, "player": b, "opponent": a, "points": {"value": 0.0}} for a, b in beats]
    >>> [(each.player, round(each.weight, 3)) for each in field_ratings({"win_matrix": cells})]
    [('paper', 0.333), ('rock', 0.333), ('scissors', 0.333)]
    """
    names = sorted({cell["player"] for cell in found["win_matrix"]})
    return rated_field(names, points_of(found["win_matrix"], names))


def rated_field(names: Sequence[str], points: NDArray[np.float64]) -> list[FieldRating]:
    """Return the ratings of players whose points against one another are known; empty unless 3 to 60 all met.

    Args:
        names: The players.
        points: [player, player] mean points as :func:`points_of` returns them.
    """
    if not FEWEST <= len(names) <= MOST or np.isnan(points).any():
        return []
    average, shares = nash_average(points - 0.5), alpha_rank(points)
    columns = zip(names, average.skills, average.weights, shares, strict=True)
    ratings = [FieldRating(name, float(skill), float(weight), float(share)) for name, skill, weight, share in columns]
    return sorted(ratings, key=lambda each: (-round(each.skill, 6), -round(each.weight, 6), each.player))


def points_of(win_matrix: Iterable[Mapping[str, Any]], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the mean points of each player against each other, nan for those that never met; antisymmetric.

    Args:
        win_matrix: Cells of a tournament's results.
        names: The players, in the order of rows and columns; cells of others are left out.
    """
    place = {name: number for number, name in enumerate(names)}
    sums, counts = np.zeros((len(names),) * 2), np.zeros((len(names),) * 2)
    for cell in win_matrix:
        if not {cell["player"], cell["opponent"]} <= place.keys():
            continue
        where = place[cell["player"]], place[cell["opponent"]]
        sums[where] += cell["points"]["value"]
        counts[where] += 1
    points = np.full_like(sums, np.nan)
    np.divide(sums, counts, out=points, where=counts > 0)
    np.fill_diagonal(points, 0.5)
    return np.clip((points + 1 - points.T) / 2, 0, 1)
