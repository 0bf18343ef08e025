"""Ratings from results: Bradley-Terry strengths with intervals that resample blocks of games, on two scales.

Strengths are natural logarithms of odds; one of them is 400 / ln 10 Elo.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from turngym.agents.intervals import RESAMPLES, Estimate
from turngym.benchmarks.statistics.bradley_terry import (
    Comparison,
    Entrant,
    Floats,
    Tally,
    maximise,
    reached_from,
    tally_of,
)
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.seeding import stream

ELO_PER_LOG = 400 / math.log(10)
SMALLEST_PRIOR = 1e-6
"""With less, rounding leaves the likelihood of resamples without a maximum."""


@dataclass(frozen=True)
class Ratings:
    """Strengths on the log scale, with 95 % intervals; :func:`in_elo` gives the other scale.

    Args:
        entrants: Each player on each side, relative to the anchor on that side.
        players: Each player: the mean over its sides.
        side_advantage: Advantage of a side among equals: log odds against the mean of the other sides.
        extremes: ``"all won"`` or ``"all lost"`` for entrants that never did otherwise: only the prior keeps their
            strength finite, and the interval is too narrow.
        groups: Entrants that comparisons link, directly or through others; those of different groups cannot be
            compared.
        anchor: The player whose strength is fixed; empty if the mean of all is.
    """

    entrants: Mapping[Entrant, Estimate]
    players: Mapping[str, Estimate]
    side_advantage: Mapping[str, Estimate]
    extremes: Mapping[Entrant, str]
    groups: tuple[tuple[Entrant, ...], ...]
    anchor: str


def in_elo(estimate: Estimate, shift: float = 0.0) -> Estimate:
    """Return an estimate in Elo, with ``shift`` Elo added to everything but the standard error.

    >>> round(in_elo(Estimate(math.log(3), 0, 0, 0, 4, 1, "")).value, 1)
    190.8
    """
    value, low, high = (shift + ELO_PER_LOG * number for number in (estimate.value, estimate.low, estimate.high))
    stderr = ELO_PER_LOG * estimate.stderr
    return Estimate(value, stderr, low, high, estimate.count, estimate.blocks, estimate.method)


def rate(
    comparisons: Iterable[Comparison],
    *,
    anchor: str = "",
    prior: float = 1.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratings:
    """Return strengths with intervals that resample whole blocks.

    Args:
        comparisons: The results, in any order.
        anchor: The player whose strength is 0 on every side that it played; on other sides, and for ``""``, the mean
            of the entrants is 0.
        prior: As for :func:`strengths`, at least 1e-6: a resample may lack somebody's only loss.
        resamples: Number.
        seed: Seed of the resampling.

    Raises:
        UnknownName: The anchor has played no game.
        ConfigError: There are no comparisons, or the prior is out of range.
    """
    comparisons = list(comparisons)
    if not SMALLEST_PRIOR <= prior < math.inf:
        raise ConfigError(f"intervals need a finite prior of at least {SMALLEST_PRIOR:g}, got {prior}: pass 0.1 or 1.")
    tally = tally_of(comparisons)
    known = {player for player, _ in tally.entrants}
    if anchor and anchor not in known:
        raise UnknownName(f"no player named {anchor!r} to anchor the ratings at. {nearest(anchor, known)}")
    count = len(tally.games)
    picks = stream("ratings", seed).multinomial(count, np.full(count, 1 / count), size=resamples).astype(float)
    points = np.vstack([tally.points.sum(0), picks @ tally.points])
    games = np.vstack([tally.games.sum(0), picks @ tally.games])
    raw = maximise(tally, points, games, prior)
    return _summary(comparisons, tally, raw, anchor)


def _summary(comparisons: Sequence[Comparison], tally: Tally, raw: Floats, anchor: str) -> Ratings:
    """Return what is reported of strengths ``[1 + resample, entrant]``, the first row being those of all games."""
    sides = sorted({side for _, side in tally.entrants})
    columns = {side: [i for i, entrant in enumerate(tally.entrants) if entrant[1] == side] for side in sides}
    centres = {}
    for side, members in columns.items():
        fixed = [i for i in members if tally.entrants[i][0] == anchor]
        centres[side] = raw[:, fixed or members].mean(1)
    relative = np.stack([raw[:, i] - centres[side] for i, (_, side) in enumerate(tally.entrants)], axis=1)
    met: dict[Entrant, list[Comparison]] = {entrant: [] for entrant in tally.entrants}
    for comparison in comparisons:
        for entrant in {*comparison.first, *comparison.second}:
            met[entrant].append(comparison)

    def estimate(values: Floats, of: Iterable[Entrant]) -> Estimate:
        seen = {id(comparison): comparison.block for entrant in of for comparison in met[entrant]}
        low, high = np.percentile(values[1:], [2.5, 97.5]) if len(values) > 1 else (values[0], values[0])
        spread = float(values[1:].std()) if len(values) > 1 else 0.0
        blocks = len(set(seen.values()))
        return Estimate(float(values[0]), spread, float(low), float(high), len(seen), blocks, "bootstrap by block")

    players = {}
    for player in sorted({player for player, _ in tally.entrants}):
        own = [i for i, entrant in enumerate(tally.entrants) if entrant[0] == player]
        players[player] = estimate(relative[:, own].mean(1), [tally.entrants[i] for i in own])
    advantage = {}
    for side in sides if len(sides) > 1 else ():
        others = np.mean([centres[other] for other in sides if other != side], axis=0)
        advantage[side] = estimate(centres[side] - others, [tally.entrants[i] for i in columns[side]])
    return Ratings(
        {entrant: estimate(relative[:, i], [entrant]) for i, entrant in enumerate(tally.entrants)},
        players,
        advantage,
        _extremes(met),
        _groups(comparisons, tally.entrants),
        anchor,
    )


def _groups(comparisons: Iterable[Comparison], entrants: Sequence[Entrant]) -> tuple[tuple[Entrant, ...], ...]:
    links: dict[Entrant, set[Entrant]] = {entrant: set() for entrant in entrants}
    for comparison in comparisons:
        together = {*comparison.first, *comparison.second}
        for entrant in together:
            links[entrant] |= together
    groups: list[tuple[Entrant, ...]] = []
    for entrant in entrants:
        if not any(entrant in group for group in groups):
            groups.append(tuple(sorted(reached_from(entrant, links))))
    return tuple(groups)


def _extremes(met: Mapping[Entrant, Sequence[Comparison]]) -> dict[Entrant, str]:
    found = {}
    for entrant, comparisons in met.items():
        gained = {c.points if entrant in c.first else 1 - c.points for c in comparisons}
        if len(gained) == 1 and (only := gained.pop()) in (0.0, 1.0):
            found[entrant] = "all won" if only else "all lost"
    return found
