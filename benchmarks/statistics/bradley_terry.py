"""Bradley-Terry strengths by maximum likelihood (Bradley and Terry 1952).

An entrant is a player on a side, since a good detective need not be a good liar. The chance that one beats another is

    P(a beats b) = 1 / (1 + exp(strength_b - strength_a))

and a team is as strong as the mean of its members. Half a point each stands for a draw. Unlike sequential Elo, the
result depends on no order of the games.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Entrant: TypeAlias = tuple[str, str]
"""A player and its side; the side is empty where all sides are alike."""
Floats: TypeAlias = NDArray[np.float64]

_MAX_ITERATIONS, _TOLERANCE = 200, 1e-8


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of one game between two teams.

    Args:
        first: Members of one team; a member may occur several times.
        second: Members of the other.
        points: Result of the first team, in [0, 1]: 1 won, 0.5 drew, 0 lost.
        block: Games of one block depend on one another: they share a seed.
        weight: Weight; less than 1 if one game gives several comparisons.
    """

    first: tuple[Entrant, ...]
    second: tuple[Entrant, ...]
    points: float
    block: int | str = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.first or not self.second:
            raise ConfigError("a comparison needs at least one entrant on either side, got none.")
        if not 0 <= self.points <= 1 or not 0 < self.weight < math.inf:
            raise ConfigError(
                f"a comparison needs points in [0, 1] and a finite weight above 0, got {self.points} and {self.weight}."
            )


@dataclass(frozen=True)
class Tally:
    """Comparisons added up by block and pairing, in an order that depends on their content alone."""

    entrants: tuple[Entrant, ...]
    design: Floats  # [pairing, entrant] what a strength adds to the log odds of the first team
    points: Floats  # [block, pairing]
    games: Floats  # [block, pairing]


def strengths(comparisons: Iterable[Comparison], prior: float = 1.0) -> dict[Entrant, float]:
    """Return the most likely strengths; their mean is near 0, and exactly 0 without prior.

    Args:
        comparisons: The results, in any order.
        prior: Games that every entrant is taken to have drawn with an imaginary player of strength 0. It keeps those
            who won everything finite. With 0 the likelihood alone decides.

    Raises:
        ConfigError: Without prior, the strengths are infinite or cannot be compared.

    >>> a, b = ("a", ""), ("b", "")
    >>> found = strengths([Comparison((a,), (b,), 1.0)] * 3 + [Comparison((a,), (b,), 0.0)], prior=0)
    >>> round(found[a] - found[b], 6) == round(math.log(3), 6)
    True
    """
    if not 0 <= prior < math.inf:
        raise ConfigError(f"prior must be at least 0 and finite, got {prior}.")
    comparisons = list(comparisons)
    tally = tally_of(comparisons)
    if not prior:
        _require_finite(comparisons, tally.entrants)
    found = maximise(tally, tally.points.sum(0)[None], tally.games.sum(0)[None], prior)[0]
    return dict(zip(tally.entrants, map(float, found), strict=True))


def tally_of(comparisons: Sequence[Comparison]) -> Tally:
    """Add up comparisons; sums are exact, so that no order of theirs changes a bit."""
    cells: dict[tuple[tuple[Entrant, ...], tuple[Entrant, ...], int | str], tuple[list[float], list[float]]] = {}
    for comparison in comparisons:
        first, second, points = tuple(sorted(comparison.first)), tuple(sorted(comparison.second)), comparison.points
        if second < first:
            first, second, points = second, first, 1 - points
        cell = cells.setdefault((first, second, comparison.block), ([], []))
        cell[0].append(points * comparison.weight)
        cell[1].append(comparison.weight)
    if not cells:
        raise ConfigError("ratings need at least one game, got none.")
    entrants = tuple(sorted({entrant for first, second, _ in cells for entrant in first + second}))
    pairings = sorted({cell[:2] for cell in cells})
    blocks = sorted({cell[2] for cell in cells}, key=lambda block: (str(type(block)), block))
    row = {pairing: i for i, pairing in enumerate(pairings)}
    place = {block: i for i, block in enumerate(blocks)}
    points_of, games = np.zeros((len(blocks), len(pairings))), np.zeros((len(blocks), len(pairings)))
    for (first, second, block), (gained, weights) in cells.items():
        where = place[block], row[first, second]
        points_of[where], games[where] = math.fsum(gained), math.fsum(weights)
    return Tally(entrants, _design(pairings, entrants), points_of, games)


def _design(pairings: Sequence[tuple[tuple[Entrant, ...], ...]], entrants: Sequence[Entrant]) -> Floats:
    column = {entrant: i for i, entrant in enumerate(entrants)}
    design = np.zeros((len(pairings), len(entrants)))
    for i, (first, second) in enumerate(pairings):
        for team, sign in ((first, 1.0), (second, -1.0)):
            for entrant in team:
                design[i, column[entrant]] += sign / len(team)
    return design


def maximise(tally: Tally, points: Floats, games: Floats, prior: float) -> Floats:
    """Return the strengths ``[fit, entrant]`` that maximise the likelihood of each row of results ``[fit, pairing]``.

    Newton's method; a step that changes a pairing's log odds by at most ``b`` is shortened to ``ln(1 + b) / b`` of
    its length, with which the logistic likelihood never falls (Sun and Tran-Dinh 2019, generalised self-concordance).
    """
    count = len(tally.entrants)
    design = np.vstack([tally.design, np.eye(count)])  # the imaginary player comes last
    draws = np.full((len(points), count), float(prior))
    points, games = np.hstack([points, draws / 2]), np.hstack([games, draws])
    squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    # without prior a shift of all strengths changes nothing: this keeps their sum at 0
    level = np.zeros((count, count)) if prior else np.ones((count, count))
    found = np.zeros((len(points), count))
    for _ in range(_MAX_ITERATIONS):
        odds = found @ design.T
        chances = 0.5 * (1 + np.tanh(odds / 2))
        gradient = (points - games * chances) @ design
        curvature = ((games * chances * (1 - chances)) @ squares).reshape(-1, count, count) + level
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        reach = np.maximum(np.abs(step @ design.T).max(1), 1e-12)
        found += step * (np.log1p(reach) / reach)[:, None]
        if reach.max() < _TOLERANCE:  # the error is now about the square of that
            break
    return found


def _require_finite(comparisons: Sequence[Comparison], entrants: Sequence[Entrant]) -> None:
    """Refuse results whose likelihood has no maximum: everybody must be reached from everybody by points taken."""
    gave: dict[Entrant, set[Entrant]] = {entrant: set() for entrant in entrants}
    took: dict[Entrant, set[Entrant]] = {entrant: set() for entrant in entrants}
    for comparison in comparisons:
        if len({*comparison.first}) > 1 or len({*comparison.second}) > 1:
            raise ConfigError("teams of several entrants need a prior above 0: pass a small one, such as 0.1.")
        first, second = comparison.first[0], comparison.second[0]
        for winner, loser, points in ((first, second, comparison.points), (second, first, 1 - comparison.points)):
            if points:
                took[winner].add(loser)
                gave[loser].add(winner)
    for links in (took, gave):
        reached = reached_from(entrants[0], links)
        if len(reached) < len(entrants):
            lost = next(entrant for entrant in entrants if entrant not in reached)
            raise ConfigError(
                f"without prior the strengths are not finite: {_name(entrants[0])} and {_name(lost)} are not linked by "
                "points in both directions. Pass a small prior, such as 0.1, or play more games."
            )


def _name(entrant: Entrant) -> str:
    return " as ".join(part for part in entrant if part)


def reached_from(start: Entrant, links: Mapping[Entrant, Iterable[Entrant]]) -> set[Entrant]:
    """Return those that links lead to from ``start``, itself included."""
    reached, waiting = {start}, [start]
    while waiting:
        for other in links[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached
