"""Hours, taxes, rebates, utility and welfare of workers in a period, and the best choices of workers and planner.

Money is counted in hundredths. Effort and its default parameters are those of the LLM Economist (arXiv 2507.15815).

>>> economy = Economy(workers=2)
>>> hours = economy.best_hours([10, 120], (0, 0))
>>> hours, economy.period([10, 120], hours, (50, 50)).incomes
([32, 86], (320, 10320))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Rates: TypeAlias = tuple[int, ...]
"""Marginal rate of each bracket, in percent."""
Integers: TypeAlias = NDArray[np.int64]

LONGEST = 100
"""Most hours of a period."""
COST, EXPONENT = 0.0005, 3.5
"""Effort of l hours is ``COST * l ** EXPONENT``."""
ELASTICITY = 1 / (EXPONENT - 1)
"""Elasticity of hours, and of income, to the share of income that is kept."""
HUNDRED = 100
RATE_STEP = 10
"""Percent between two rates."""
LOG_SCALE = 1000
"""Net income from which on logarithmic utility bends."""
_LAST = 2**40


def effort(hours: float) -> float:
    """Return the cost of hours.

    >>> effort(100), effort(0)
    (5000.0, 0.0)
    """
    return COST * hours**3 * math.sqrt(hours)


def free_hours(skill: float, kept: float) -> float:
    """Return the best hours at a flat rate, not rounded: those where the last hour earns what it costs.

    Args:
        skill: Income of an hour.
        kept: Share of the last income that the worker keeps.

    >>> round(free_hours(40, 1.0), 2), round(free_hours(40, 0.6), 2)
    (55.41, 45.17)
    """
    return float((skill * kept / (COST * EXPONENT)) ** ELASTICITY)


def weights(skills: Sequence[int]) -> list[float]:
    """Return fixed welfare weights: inverse to the income that each worker would choose without taxes, with mean 1.

    Weights by actual income would reward a planner that makes workers poor.

    >>> [round(weight, 3) for weight in weights([10, 120])]
    [1.94, 0.06]
    """
    inverse = [skill ** -(1 + ELASTICITY) for skill in skills]
    return [each * len(skills) / math.fsum(inverse) for each in inverse]


def saez_rate(incomes: Sequence[float], shares: Sequence[float]) -> float:
    """Return the optimal linear tax of Saez (2001): (1 - g) / (1 - g + e), for rebates that workers take as given.

    g is the weighted mean of incomes divided by the mean, e the elasticity of income.

    Args:
        incomes: Income of each worker under that tax.
        shares: Welfare weight of each worker.

    >>> round(saez_rate([1.0, 3.0], [1.0, 0.0]), 4)
    0.5556
    """
    mean = math.fsum(incomes) / len(incomes)
    weighted = math.fsum([share * income for share, income in zip(shares, incomes, strict=True)]) / math.fsum(shares)
    missing = 1 - weighted / mean if mean else 0.0
    return missing / (missing + ELASTICITY) if missing > 0 else 0.0


class Period(NamedTuple):
    """A period that is over, with a number for each worker.

    Args:
        incomes: Skill times hours.
        taxes: Paid taxes, in hundredths.
        rebates: Received shares of taxes.
        efforts: Cost of the hours.
        utilities: Utility.
    """

    incomes: tuple[int, ...]
    taxes: tuple[int, ...]
    rebates: tuple[float, ...]
    efforts: tuple[float, ...]
    utilities: tuple[float, ...]


_EFFORTS = [round(HUNDRED * effort(hours)) for hours in range(LONGEST + 1)]


class Economy(NamedTuple):
    """Rules of an economy.

    Args:
        workers: Number of workers.
        floors: Income at which each bracket begins, the first 0.
        shares_own: Whether the taxes of all are shared equally, or those of each only among the others.
        is_log: Whether utility is logarithmic in income net of effort, or linear.
        is_weighted: Whether welfare has the weights of :func:`weights`, or equal ones.
    """

    workers: int
    floors: tuple[int, ...] = (0, 2000)
    shares_own: bool = True
    is_log: bool = False
    is_weighted: bool = True

    @property
    def all_rates(self) -> list[Rates]:
        """Return every schedule of rates, in ascending order."""
        return list(product(range(0, HUNDRED + 1, RATE_STEP), repeat=len(self.floors)))

    def _parts(self, incomes: Integers) -> Integers:
        """Return [brackets, ...] the income in each bracket."""
        floors = np.array(self.floors, dtype=np.int64).reshape(-1, *[1] * incomes.ndim)
        widths = np.diff(floors, axis=0, append=np.full_like(floors[:1], _LAST))
        return np.asarray(np.clip(incomes - floors, 0, widths), dtype=np.int64)

    def taxes(self, incomes: Sequence[int], rates: Sequence[int]) -> list[int]:
        """Return the tax on each income, in hundredths.

        >>> Economy(workers=2).taxes([1000, 3000], (50, 20))
        [50000, 120000]
        """
        brackets = list(zip(rates, self.floors, (*self.floors[1:], _LAST), strict=True))
        return [
            sum([rate * (min(income, high) - low) for rate, low, high in brackets if income > low])
            for income in incomes
        ]

    def _responses(self, skills: Sequence[int], rates: Integers) -> Integers:
        """Return [schedules, workers] best hours, the fewest where several are best.

        They are best whatever the others do: their taxes add the same to each choice.

        Args:
            skills: Skill of each worker.
            rates: [schedules, brackets] rates.
        """
        incomes = np.asarray(skills, dtype=np.int64)[:, None] * np.arange(LONGEST + 1)
        taxes = np.tensordot(rates, self._parts(incomes), 1)
        kept = HUNDRED * incomes - np.array(_EFFORTS)
        own = (1, self.workers) if self.shares_own else (0, 1)
        return np.asarray((own[1] * kept - (own[1] - own[0]) * taxes).argmax(2))

    def best_hours(self, skills: Sequence[int], rates: Sequence[int]) -> list[int]:
        """Return the best hours of each worker, found among all whole numbers.

        Args:
            skills: Skill of each worker.
            rates: Rates of the brackets.

        >>> Economy(workers=5).best_hours([10, 20, 40, 80, 120], (50, 50))
        [26, 34, 45, 60, 70]
        """
        return list(_best_hours(self, tuple(skills), tuple(rates)))

    def period(self, skills: Sequence[int], hours: Sequence[int], rates: Sequence[int]) -> Period:
        """Return what hours bring to each worker.

        Args:
            skills: Skill of each worker.
            hours: Hours of each worker.
            rates: Rates of the brackets.
        """
        incomes = [skill * each for skill, each in zip(skills, hours, strict=True)]
        taxes = self.taxes(incomes, rates)
        total, sharers = sum(taxes), self.workers if self.shares_own else self.workers - 1
        shared = [total if self.shares_own else total - tax for tax in taxes]
        efforts = [_EFFORTS[each] for each in hours]
        net = [
            (sharers * (HUNDRED * income - tax - cost) + share) / (HUNDRED * sharers)
            for income, tax, cost, share in zip(incomes, taxes, efforts, shared, strict=True)
        ]
        return Period(
            tuple(incomes),
            tuple(taxes),
            tuple([share / (HUNDRED * sharers) for share in shared]),
            tuple([cost / HUNDRED for cost in efforts]),
            tuple([self._utility(each) for each in net]),
        )

    def _utility(self, net: float) -> float:
        """Return the utility of income net of effort; logarithmic utility is linear below 0."""
        return LOG_SCALE * math.log1p(net / LOG_SCALE) if self.is_log and net > 0 else net

    def welfare(self, skills: Sequence[int], utilities: Sequence[float]) -> float:
        """Return the weighted sum of utilities."""
        if not self.is_weighted:
            return math.fsum(utilities)
        return math.fsum([weight * each for weight, each in zip(weights(skills), utilities, strict=True)])

    def best_rates(self, skills: Sequence[int]) -> tuple[Rates, float]:
        """Return the rates with the highest welfare if every worker chooses its best hours, and that welfare.

        Of several, they are the first in ascending order.

        Raises:
            ConfigError: There are not as many skills as workers.

        >>> Economy(workers=4).best_rates([10, 20, 40, 80])[0]
        (100, 80)
        """
        if len(skills) != self.workers:
            raise ConfigError(f"an economy of {self.workers} workers needs as many skills, got {len(skills)}.")
        return _best_rates(self, tuple(skills))


@lru_cache(maxsize=4096)
def _best_hours(economy: Economy, skills: tuple[int, ...], rates: Rates) -> tuple[int, ...]:
    return tuple(economy._responses(skills, np.array([rates], dtype=np.int64))[0].tolist())


@lru_cache(maxsize=1024)
def _best_rates(economy: Economy, skills: tuple[int, ...]) -> tuple[Rates, float]:
    schedules = np.array(economy.all_rates, dtype=np.int64)
    hours = economy._responses(skills, schedules)
    incomes = hours * np.array(skills)
    taxes = np.einsum("sb,bsw->sw", schedules, economy._parts(incomes))
    total = taxes.sum(1, keepdims=True)
    sharers, shared = (economy.workers, total) if economy.shares_own else (economy.workers - 1, total - taxes)
    net = (sharers * (HUNDRED * incomes - taxes - np.array(_EFFORTS)[hours]) + shared) / (HUNDRED * sharers)
    if economy.is_log:
        net = np.array([[economy._utility(each) for each in row] for row in net.tolist()])
    shares = weights(skills) if economy.is_weighted else [1.0] * len(skills)
    # One worker after the other: a product of matrices may add equal rows in another order, and break their tie.
    welfare = sum([net[:, worker] * share for worker, share in enumerate(shares)])
    best = int(np.argmax(welfare))
    rates = tuple(schedules[best].tolist())
    return rates, economy.welfare(skills, economy.period(skills, hours[best].tolist(), rates).utilities)
