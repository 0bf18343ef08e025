"""Players of the game of taxes: best responses to rates, rates by search or by formula, and constant choices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Self, cast

import numpy as np

from turngym.envs.economies.labour import HUNDRED, LONGEST, RATE_STEP, Economy, Rates, saez_rate, weights
from turngym.envs.economies.tax_text import PLANNER, percentages
from turngym.envs.economies.taxes import HIGHEST_SKILL, LOWEST_SKILL, Taxes
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.errors import ConfigError

_SKILLS = range(LOWEST_SKILL, HIGHEST_SKILL + 1)
_SKILL = re.compile(r"skill ([0-9]{1,4})")
_RATES = re.compile(r"rates ([0-9][0-9 ]{0,40})")
_PERIOD = re.compile(r"rates ([0-9 ]{1,40}), incomes ([0-9 ]{1,200})")


class Seen(NamedTuple):
    """A period as the planner saw it.

    Args:
        rates: Rates of the brackets.
        incomes: Income of each worker.
    """

    rates: Rates
    incomes: tuple[int, ...]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def likely_skills(economy: Economy, periods: Sequence[Seen]) -> list[int]:
    """Return skills whose best hours bring incomes closest to those that were seen.

    >>> economy = Economy(workers=2)
    >>> skills = [17, 90]
    >>> incomes = [skill * hours for skill, hours in zip(skills, economy.best_hours(skills, (50, 70)))]
    >>> likely_skills(economy, [Seen((50, 70), tuple(incomes))])
    [17, 90]
    """
    off = np.zeros((economy.workers, len(_SKILLS)), dtype=np.int64)
    for rates, incomes in periods:
        off += np.abs(np.array(incomes)[:, None] - np.array(_expected(economy, rates)))
    return [_SKILLS[place] for place in off.argmin(1).tolist()]


@lru_cache(maxsize=1024)
def _expected(economy: Economy, rates: Rates) -> tuple[int, ...]:
    """Return the income of each skill at its best hours."""
    hours = economy.best_hours(_SKILLS, rates)
    return tuple([skill * each for skill, each in zip(_SKILLS, hours, strict=True)])


class Rational(Player):
    """A worker chooses its best hours; a planner infers skills from incomes and moves to the best rates for them."""

    name = "rational"

    def __init__(self, game: Taxes) -> None:
        self._economy, self._largest = game.economy, game.options.largest_change

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> Self:
        """Return the player for a game, whose public rules it knows.

        Raises:
            ConfigError: The game is another one, or there is an argument.
        """
        if argument or not isinstance(game, Taxes):
            raise ConfigError(f"{cls.name!r} plays taxes and takes no argument, got {argument!r:.80} in {game.name}.")
        return cls(game)

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember; everything is in the anchor."""

    def act(self, view: SeatView) -> str:
        """Return hours or rates."""
        now, *past = view.anchor.split("\n")
        rates = _numbers(cast(re.Match[str], _RATES.search(now))[1])
        if view.role != PLANNER:
            return str(self.hours(int(cast(re.Match[str], _SKILL.search(now))[1]), rates))
        found = [cast(re.Match[str], _PERIOD.match(line)) for line in past]
        periods = [Seen(_numbers(each[1]), _numbers(each[2])) for each in found]
        wanted = self.wanted(periods) if periods else rates
        most = self._largest
        return percentages([min(max(new, old - most), old + most) for new, old in zip(wanted, rates, strict=True)])

    def hours(self, skill: int, rates: Rates) -> int:
        """Return the hours of a worker."""
        return self._economy.best_hours([skill], rates)[0]

    def wanted(self, periods: Sequence[Seen]) -> Rates:
        """Return the rates that a planner aims at."""
        return self._economy.best_rates(likely_skills(self._economy, periods))[0]


class Saez(Rational):
    """As rational, with one rate for all brackets by the linear formula of Saez (2001), from the last incomes."""

    name = "saez"

    def wanted(self, periods: Sequence[Seen]) -> Rates:
        """Return the formula's rate, rounded, for each bracket."""
        shares = weights(likely_skills(self._economy, periods)) if self._economy.is_weighted else None
        incomes = periods[-1].incomes
        rate = saez_rate(incomes, shares or [1.0] * len(incomes))
        return (RATE_STEP * round(rate * HUNDRED / RATE_STEP),) * len(self._economy.floors)


class Steady(Rational):
    """A worker works half of the hours, and a planner keeps the rates."""

    name = "steady"

    def hours(self, skill: int, rates: Rates) -> int:
        """Return half of the hours."""
        return LONGEST // 2

    def wanted(self, periods: Sequence[Seen]) -> Rates:
        """Return the rates of the last period."""
        return periods[-1].rates
