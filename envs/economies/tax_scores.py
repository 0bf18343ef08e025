"""What the choices of a game of taxes have brought, compared with the best ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from turngym.envs.economies.inequality import equality
from turngym.envs.economies.labour import HUNDRED, Economy, Rates

HIGHEST_SCORE = 2.0


def first_rates(economy: Economy) -> Rates:
    """Return the rates before the first decision of a planner."""
    return (HUNDRED // 2,) * len(economy.floors)


class Round(NamedTuple):
    """Choices of a period that is over.

    Args:
        rates: Rate of each bracket.
        hours: Hours of each worker.
    """

    rates: Rates
    hours: tuple[int, ...]


class Course:
    """The periods of a game that are over.

    Args:
        economy: Rules of the economy.
        skills: Skill of each worker.
        rounds: Choices of each period.
    """

    def __init__(self, economy: Economy, skills: Sequence[int], rounds: Sequence[Round]) -> None:
        self.economy, self.skills, self.rounds = economy, skills, rounds
        self.periods = [economy.period(skills, each.hours, each.rates) for each in rounds]

    def planner_score(self, largest_change: int) -> float:
        """Return welfare, divided by what rates reach that may change so much in a period."""
        share = self._welfare() / self._reachable(largest_change)
        return min(max(share, 0.0), HIGHEST_SCORE)

    def _welfare(self) -> float:
        """Return the mean welfare of a period."""
        return fmean([self.economy.welfare(self.skills, each.utilities) for each in self.periods])

    def _reachable(self, most: int) -> float:
        """Return the mean welfare if rates move to the best ones as fast as allowed and workers choose best hours."""
        economy, skills = self.economy, self.skills
        wanted, rates = economy.best_rates(skills)[0], first_rates(economy)
        found = []
        for _ in self.rounds:
            rates = tuple([min(max(new, old - most), old + most) for new, old in zip(wanted, rates, strict=True)])
            utilities = economy.period(skills, economy.best_hours(skills, rates), rates).utilities
            found.append(economy.welfare(skills, utilities))
        return fmean(found)

    def worker_score(self, seat: int) -> float:
        """Return what a worker's hours add to its utility without work, divided by what its best hours add."""
        added, possible = [], []
        for choices, period in zip(self.rounds, self.periods, strict=True):
            best = self.economy.best_hours(self.skills, choices.rates)[seat]
            idle, most = (self._instead(seat, choices, hours) for hours in (0, best))
            added.append(period.utilities[seat] - idle)
            possible.append(most - idle)
        share, best_sum = math.fsum(added), math.fsum(possible)
        return min(max(share / best_sum, 0.0), 1.0) if best_sum > 0 else float(share >= 0)

    def _instead(self, seat: int, choices: Round, hours: int) -> float:
        """Return the utility of a worker if it alone had chosen other hours."""
        changed = [hours if other == seat else each for other, each in enumerate(choices.hours)]
        return self.economy.period(self.skills, changed, choices.rates).utilities[seat]

    def metrics(self) -> dict[str, float]:
        """Return welfare and its best, mean income, equality of incomes net of taxes, and mean rates."""
        periods = self.periods
        net = [
            equality([round(HUNDRED * (z + back)) - tax for z, back, tax in zip(p[0], p.rebates, p.taxes, strict=True)])
            for p in periods
        ]
        found = {
            "welfare": self._welfare() if periods else 0.0,
            "best_welfare": self.economy.best_rates(self.skills)[1],
            "mean_income": fmean([fmean(p.incomes) for p in periods]) if periods else 0.0,
            "equality": fmean(net) if net else 1.0,
        }
        for place in range(len(self.economy.floors)):
            found[f"rate_{place + 1}"] = fmean([each.rates[place] for each in self.rounds]) if periods else 0.0
        return found
