"""Matchmaking: the game, the players and the sides whose result is expected to say most about the ratings.

The strengths of a game have about a normal distribution around their most likely values, with the inverse of the
Fisher information as covariance ``S``; drawn games with an imaginary player, the prior, are part of it. A game between
entrants with difference ``x`` adds ``w x x'`` to the information, where ``w = p (1 - p)`` is the same whoever wins. So
the sum of the variances of the ratings, which are linear in the strengths by ``C``, falls by

    w |C S x|^2 / (1 + w x' S x)

(Sherman and Morrison 1950). The largest fall is next: sequential A-optimal design (Chaloner and Verdinelli 1995,
"Bayesian experimental design: a review"; Glickman and Jensen 2005, "Adaptive paired comparison design", match by
information gain). ``p (1 - p)`` is its mean over what is not known of ``p`` (MacKay 1992, equation for the moderated
output of a logistic unit), and counts as :data:`LARGEST` at most: matches of similar players are no better than others,
only hopeless ones are worse. Else a player that was lucky meets the strong alone, and its luck stays in the ratings.

Ratings between players that seldom meet rest on the model alone, and players may beat one another in circles. So every
:data:`COVERAGE`-th match is one between those who met least often.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.benchmarks.statistics.bradley_terry import Comparison, Entrant, Floats, maximise, tally_of

COVERAGE, LARGEST = 4, 0.12
_DIGITS = 9


class Offer(NamedTuple):
    """Players for the sides of a game.

    Args:
        gain: Expected fall of the sum of the variances of the ratings, in squared natural logarithms of odds.
        lineup: Player of each side.
    """

    gain: float
    lineup: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """Results of a game so far.

    Args:
        compared: What they say about strengths.
        held: (player, side) -> number of games.
    """

    compared: Sequence[Comparison]
    held: Mapping[tuple[str, str], int]


class Pool:
    """The ratings of the players of one game, and what another match would add to them.

    Args:
        players: Those that may play, at least two.
        sides: Teams of the game, at least two.
        is_alike: Whether a player has one strength for all sides.
        played: Results so far, of other players too.
        prior: Drawn games of every entrant with an imaginary player, above 0.

    >>> won = Comparison((("a", ""),), (("b", ""),), 1.0)
    >>> pool = Pool(["a", "b", "c"], ["x", "y"], True, Played([won] * 9, Counter()))
    >>> "c" in pool.best().lineup, pool.fewest_meetings
    (True, 0.0)
    """

    def __init__(
        self, players: Sequence[str], sides: Sequence[str], is_alike: bool, played: Played, prior: float = 1.0
    ) -> None:
        self.players, self.sides, self.is_alike = list(players), list(sides), is_alike
        named = {entrant for one in played.compared for entrant in (*one.first, *one.second)}
        mine = [(player, side) for player in players for side in ([""] if is_alike else sides)]
        self._entrants = mine + sorted(named.difference(mine))
        self._place = {entrant: number for number, entrant in enumerate(self._entrants)}
        self._strengths, self._covariance = _fit(played.compared, self._place, prior)
        self._contrast = _contrast(mine, len(self._entrants))
        self._held = Counter(played.held)
        self._meetings = np.zeros((len(players),) * 2)
        numbers = {player: number for number, player in enumerate(players)}
        for one in played.compared:
            self._met({name for name, _ in one.first}, {name for name, _ in one.second}, numbers)

    def _met(self, first: set[str], second: set[str], numbers: Mapping[str, int]) -> None:
        for one in first & numbers.keys():
            for other in second & numbers.keys():
                self._meetings[numbers[one], numbers[other]] += 1
                self._meetings[numbers[other], numbers[one]] += 1

    @property
    def fewest_meetings(self) -> float:
        """How often the two players met that met least often."""
        return float(self._meetings[~np.eye(len(self.players), dtype=bool)].min())

    def best(self) -> Offer:
        """Return the match whose result is expected to say most."""
        return self._offer(np.ones_like(self._meetings, dtype=bool))

    def least_met(self) -> Offer:
        """Return the best of the matches between two players that met least often."""
        return self._offer(self._meetings == self.fewest_meetings)

    def _offer(self, allowed: NDArray[np.bool_]) -> Offer:
        sides = self._turned_sides()
        gains = self._gains(1 / (len(sides) - 1))
        first, second = self._columns(sides[0]), self._columns(sides[1])
        found = np.where(allowed & ~np.eye(len(self.players), dtype=bool), gains[np.ix_(first, second)], -np.inf)
        one, other = self._largest(found, sides)
        gain = float(found[one, other])
        if self._burden((one, other), sides) > self._burden((other, one), sides):
            one, other = other, one
        lineup = {sides[0]: self.players[one], sides[1]: self.players[other]}
        for side in sides[2:]:
            lineup[side] = self._joining(side, lineup, gains)
        order = [lineup[side] for side in self.sides]
        return Offer(gain, self._turned(order) if self.is_alike else tuple(order))

    def _turned_sides(self) -> list[str]:
        """Return the sides from another one on for every game: where there are many, the first two are matched best."""
        start = sum(self._held.values()) // len(self.sides) % len(self.sides) if len(self.sides) > 2 else 0
        return self.sides[start:] + self.sides[:start]

    def _column(self, player: str, side: str) -> int:
        return self._place[player, "" if self.is_alike else side]

    def _columns(self, side: str) -> list[int]:
        return [self._column(player, side) for player in self.players]

    def _gains(self, weight: float) -> Floats:
        """Return the fall of the sum of variances by a game of each two entrants, ``[entrant, entrant]``."""
        moved = self._contrast @ self._covariance
        between, effect = _distances(self._covariance), _distances(moved.T @ moved)
        odds = self._strengths[:, None] - self._strengths[None, :]
        information = weight * _information(odds / np.sqrt(1 + math.pi / 8 * between))
        return np.asarray(information * effect / (1 + information * between))

    def _largest(self, found: Floats, sides: Sequence[str]) -> tuple[int, int]:
        """Return the place of the largest number; of equal ones, up to rounding, that of the players less on a side."""
        near = [(int(one), int(other)) for one, other in np.argwhere(found >= found.max() * (1 - 10.0**-_DIGITS))]
        return min(near, key=lambda pair: (self._burden(pair, sides), pair))

    def _burden(self, pair: tuple[int, int], sides: Sequence[str]) -> int:
        """Return how often two players have held the first two sides."""
        return sum(self._held[self.players[number], side] for number, side in zip(pair, sides, strict=False))

    def _joining(self, side: str, lineup: Mapping[str, str], gains: Floats) -> str:
        """Return who joins a lineup: of those with the fewest seats in it the one whose games with it say most."""
        seats = Counter(lineup.values())
        fewest = min(seats[player] for player in self.players)
        mine = self._columns(side)
        others = [self._column(name, taken) for taken, name in lineup.items()]
        sums = [round(float(gains[column, others].sum()), _DIGITS) for column in mine]
        able = [number for number, player in enumerate(self.players) if seats[player] == fewest]
        return self.players[max(able, key=lambda n: (sums[n], -self._held[self.players[n], side], -n))]

    def _turned(self, lineup: Sequence[str]) -> tuple[str, ...]:
        """Return players of equal sides, turned so that they hold the sides that they held least often."""
        turns = [(*lineup[start:], *lineup[:start]) for start in range(len(lineup))]
        return min(turns, key=lambda turn: sum(self._held[pair] for pair in zip(turn, self.sides, strict=True)))

    def take(self, lineup: Sequence[str]) -> None:
        """Count a match as played; its result is not known yet, but what it will add to the information is."""
        numbers = {player: number for number, player in enumerate(self.players)}
        weight = 1 / (len(lineup) - 1)
        seated = list(zip(lineup, self.sides, strict=True))
        for number, (player, side) in enumerate(seated):
            self._held[player, side] += 1
            for other, other_side in seated[:number]:
                self._add(self._column(player, side), self._column(other, other_side), weight)
                if player != other:
                    self._met({player}, {other}, numbers)

    def _add(self, one: int, other: int, weight: float) -> None:
        column = self._covariance[:, one] - self._covariance[:, other]
        between = float(column[one] - column[other])
        odds = float(self._strengths[one] - self._strengths[other]) / math.sqrt(1 + math.pi / 8 * between)
        information = weight * float(_information(np.array(odds)))
        self._covariance = self._covariance - np.outer(column, column) * (information / (1 + information * between))


def _fit(compared: Sequence[Comparison], place: Mapping[Entrant, int], prior: float) -> tuple[Floats, Floats]:
    """Return the most likely strengths and their covariance."""
    strengths, information = np.zeros(len(place)), np.zeros((len(place),) * 2)
    if compared:
        tally = tally_of(compared)
        columns, games = [place[entrant] for entrant in tally.entrants], tally.games.sum(0)
        strengths[columns] = maximise(tally, tally.points.sum(0)[None], games[None], prior)[0]
        design = np.zeros((len(tally.design), len(place)))
        design[:, columns] = tally.design
        information = design.T @ ((games * _information(design @ strengths))[:, None] * design)
    return np.asarray(strengths), np.asarray(np.linalg.inv(information + np.diag(prior * _information(strengths))))


def _contrast(entrants: Sequence[Entrant], count: int) -> Floats:
    """Return the matrix that makes ratings of strengths: the mean over the sides, less the mean of the players."""
    players = list(dict.fromkeys(player for player, _ in entrants))
    rows = np.zeros((len(players), count))
    for number, (player, _) in enumerate(entrants):
        rows[players.index(player), number] = len(players) / len(entrants)
    return np.asarray(rows - rows.mean(0))


def _distances(form: Floats) -> Floats:
    """Return ``x' form x`` for the difference ``x`` of each two unit vectors."""
    own = np.diag(form)
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2 * form, 0.0))


def _information(odds: Floats) -> Floats:
    """Return ``p (1 - p)`` of log odds as far as it counts, and at least a little, so that it can be divided by."""
    return np.asarray(np.clip(0.25 / np.cosh(np.clip(odds / 2, -300, 300)) ** 2, 1e-12, LARGEST))


def choose(pools: Mapping[str, Pool], number: int) -> tuple[str, tuple[str, ...]]:
    """Return the game of a match and the player of each of its sides.

    Args:
        pools: Game -> its ratings.
        number: Number of the match.
    """
    if number % COVERAGE == COVERAGE - 1:
        fewest = min(pool.fewest_meetings for pool in pools.values())
        offers = {name: pool.least_met() for name, pool in pools.items() if pool.fewest_meetings == fewest}
    else:
        offers = {name: pool.best() for name, pool in pools.items()}
    most = max(offer.gain for offer in offers.values())
    name = next(name for name, offer in offers.items() if offer.gain >= most * (1 - 10.0**-_DIGITS))
    return name, offers[name].lineup
