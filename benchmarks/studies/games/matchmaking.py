"""Matchmaking of arenas against round robin, at the same number of matches, with players of known strength.

    python benchmarks/studies/games/matchmaking.py [--trials 30]

Strengths are drawn from a normal distribution, results from Bradley-Terry, and the first side has an advantage. Each
trial plays the same population with every rule and rates it as an arena does. Measured are the root mean squared error
of the ratings, their standard error (from the Fisher information of the matches at the true strengths), the mean width
of the 95 % intervals, how often these hold the truth, and the share of pairs of players that they separate in the right
order. In the last case one player joins others that have met often, and the figures are of that player. Writes
``benchmarks/results/matchmaking.json``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations
from typing import Any

import numpy as np
from rich.progress import track

from turngym.agents.intervals import paired_difference
from turngym.benchmarks.arena.matchmaking import Played, Pool, choose
from turngym.benchmarks.arena.plan import ROUND
from turngym.benchmarks.statistics.bradley_terry import Comparison
from turngym.benchmarks.statistics.ratings import ELO_PER_LOG, rate
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.seeding import stream

SIDES, ADVANTAGE, RESAMPLES = ("first", "second"), 0.3, 200
Meeting = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Case:
    """A population.

    Args:
        players: Number.
        spreads: Game -> standard deviation of the strengths, as natural logarithms of odds.
        matches: Number of matches.
        settled: Number of matches before these between all players but the last, by round robin.
    """

    players: int
    spreads: Mapping[str, float]
    matches: int
    settled: int = 0


CASES = {
    "12 players, close (100 Elo)": Case(12, {"game": 100 / ELO_PER_LOG}, 264),
    "12 players, apart (300 Elo)": Case(12, {"game": 300 / ELO_PER_LOG}, 264),
    "12 players, far apart (600 Elo)": Case(12, {"game": 600 / ELO_PER_LOG}, 264),
    "8 players, two games (100 and 400 Elo)": Case(8, {"close": 100 / ELO_PER_LOG, "wide": 400 / ELO_PER_LOG}, 224),
    "a 12th player joins (300 Elo)": Case(12, {"game": 300 / ELO_PER_LOG}, 44, 220),
}
"""Round robin plays every pair four times, in two games each, but for the last case, in which it plays every third."""


class Trial:
    """One population, whose results are drawn.

    Args:
        case: The case.
        number: Number of the trial.
        rule: Name of the rule, which has its own results.
    """

    def __init__(self, case: Case, number: int, rule: str) -> None:
        self.case, self.names = case, [f"p{player:02}" for player in range(case.players)]
        self._rated = self.names[-1:] if case.settled else self.names
        self.order = stream("matchmaking order", number)
        drawn = stream("matchmaking study", number)
        self.strengths = {
            game: dict(zip(self.names, drawn.normal(0, spread, case.players), strict=True))
            for game, spread in case.spreads.items()
        }
        self._results = stream("matchmaking results", number, rule)
        self.compared: dict[str, list[Comparison]] = {game: [] for game in case.spreads}
        self.held: dict[str, Counter[tuple[str, str]]] = {game: Counter() for game in case.spreads}

    def play(self, number: int, game: str, lineup: Sequence[str]) -> None:
        """Draw the result of a match."""
        first, second = lineup
        odds = self.strengths[game][first] - self.strengths[game][second] + ADVANTAGE
        points = float(self._results.random() < 1 / (1 + np.exp(-odds)))
        entrants = (((first, "first"),), ((second, "second"),))
        self.compared[game].append(Comparison(*entrants, points, number))
        self.held[game].update(zip(lineup, SIDES, strict=True))

    def measured(self) -> dict[str, float]:
        """Return the figures, in Elo where they are ratings, as means over games and players."""
        widths, squares, holds, apart, variances = [], [], [], [], []
        for game, strengths in self.strengths.items():
            truth = {name: value - np.mean(list(strengths.values())) for name, value in strengths.items()}
            found = rate(self.compared[game], resamples=RESAMPLES).players
            for name in self._rated:
                estimate = found[name]
                widths.append(ELO_PER_LOG * (estimate.high - estimate.low))
                squares.append((ELO_PER_LOG * (estimate.value - truth[name])) ** 2)
                holds.append(estimate.low <= truth[name] <= estimate.high)
            for one, other in combinations(sorted(found, key=lambda name: truth[name]), 2):
                if {one, other}.intersection(self._rated):
                    apart.append(found[one].high < found[other].low)
            variances.append(self._variance(game))
        figures = {"width": widths, "coverage": holds, "separated": apart}
        means = {name: float(np.mean(values)) for name, values in figures.items()}
        roots = {"error": np.mean(squares), "standard error": np.mean(variances)}
        return {**{name: float(value**0.5) for name, value in roots.items()}, **means}

    def _variance(self, game: str) -> float:
        """Return the mean variance of the ratings of a game in squared Elo, from its matches and the truth."""
        count = len(self.names)
        information = np.eye(2 * count) * 0.25  # the prior, about
        for one in self.compared[game]:
            places = [self.names.index(name) + count * SIDES.index(side) for name, side in (*one.first, *one.second)]
            odds = self.strengths[game][one.first[0][0]] - self.strengths[game][one.second[0][0]] + ADVANTAGE
            change = np.zeros(2 * count)
            change[places] = 1, -1
            information += np.outer(change, change) * 0.25 / np.cosh(odds / 2) ** 2
        mean = np.eye(count) - 1 / count
        contrast = np.hstack([mean, mean])[[self.names.index(name) for name in self._rated]] / 2
        return float(ELO_PER_LOG**2 * np.trace(contrast @ np.linalg.inv(information) @ contrast.T) / len(contrast))


def round_robin(trial: Trial, names: Sequence[str] = ()) -> Iterator[Meeting]:
    """Yield each pair in both seat orders in each game, in a random order, again and again."""
    pairs = list(permutations(names or trial.names, 2))
    every = [(game, pair) for game in trial.strengths for pair in pairs]
    while True:
        yield from (every[number] for number in trial.order.permutation(len(every)))


def arena(trial: Trial) -> Iterator[Meeting]:
    """Yield what an arena plays."""
    number = 0
    while True:
        pools = {
            game: Pool(trial.names, SIDES, False, Played(_of_one_block(compared), trial.held[game]))
            for game, compared in trial.compared.items()
        }
        chosen = []
        for _ in range(ROUND):
            game, lineup = choose(pools, number)
            pools[game].take(lineup)
            chosen.append((game, lineup))
            number += 1
        yield from chosen


def _of_one_block(compared: Sequence[Comparison]) -> list[Comparison]:
    return [Comparison(one.first, one.second, one.points) for one in compared]


RULES: Mapping[str, Callable[[Trial], Iterator[Meeting]]] = {
    "round robin": round_robin,
    "arena": arena,
}


def run(case: Case, trials: Sequence[int]) -> dict[str, Any]:
    """Return the figures of a case: means of each rule, and the arena less round robin with its interval."""
    found: dict[str, list[dict[str, float]]] = {rule: [] for rule in RULES}
    for number in trials:
        for rule, meetings in RULES.items():
            trial = Trial(case, number, rule)
            settled = islice(round_robin(trial, trial.names[:-1]), case.settled)
            for match, (game, lineup) in enumerate(chain(settled, islice(meetings(trial), case.matches))):
                trial.play(match, game, lineup)
            found[rule].append(trial.measured())
    told: dict[str, Any] = {"matches": case.matches, "trials": len(trials)}
    for name in found["arena"][0]:
        arms = {rule: [each[name] for each in figures] for rule, figures in found.items()}
        told[name] = {rule: round(float(np.mean(values)), 4) for rule, values in arms.items()}
        difference = paired_difference(arms["arena"], arms["round robin"])
        told[name]["arena less round robin"] = [
            round(value, 4) for value in (difference.value, difference.low, difference.high)
        ]
    return told


def main() -> int:
    """Run all cases, print their figures and write them."""
    parser = arguments(__doc__, "matchmaking.json")
    parser.add_argument("--trials", type=int, default=30, help="populations of each case")
    given = parser.parse_args()
    cases = {name: run(case, range(given.trials)) for name, case in track(CASES.items(), "cases")}
    for name, told in cases.items():
        print(name, *(f"{key} {value}" for key, value in told.items()), sep="\n  ")
    write_result(given.out, {"cases": cases})
    return 0


if __name__ == "__main__":
    sys.exit(main())
