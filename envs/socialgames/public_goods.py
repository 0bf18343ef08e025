"""Public goods: a pool that grows with what seats give, and is shared by all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar

from turngym.envs.socialgames.numbers import NumberGame, NumberPlayer
from turngym.options import OptionError, between

_PLAYERS = "turngym.envs.socialgames"


class PublicGoods(NumberGame):
    """Each seat keeps what it does not give; the pool is multiplied and shared equally.

    With a multiplier between 1 and the number of seats, giving nothing is the only equilibrium, and all are best off if
    everybody gives everything.

    >>> PublicGoods().payoffs([0, 20, 20, 20]), PublicGoods().payoffs([20, 20, 20, 20])
    ([44.0, 24.0, 24.0, 24.0], [32.0, 32.0, 32.0, 32.0])
    """

    name = "public_goods"
    verb = "give"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "last winner's first action", "winners' most frequent action"),
        "giving nothing earns more than giving, whatever the others do.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "equilibrium": f"{_PLAYERS}.numbers:ZeroPlayer",
        "conditional": f"{_PLAYERS}.public_goods:ConditionalPlayer",
        "giver": f"{_PLAYERS}.public_goods:GivingPlayer",
    }

    class Options(NumberGame.Options):
        endowment: Annotated[int, between(1, 100)] = 20
        """Points that each seat has in each round."""
        multiplier: Annotated[float, between(1, 10)] = 1.6
        """Factor of the pool; above 1 and below the number of seats."""

        def check(self) -> None:
            if not 1 < self.multiplier < self.num_seats:
                raise OptionError(
                    "multiplier",
                    f"must be above 1 and below {self.num_seats}, the number of seats, got {self.multiplier}.",
                )

    options: Options

    @property
    def highest(self) -> int:
        """All points of a round."""
        return self.options.endowment

    @property
    def payoff_range(self) -> tuple[float, float]:
        """Payoffs of the only giver, and of the only one that keeps everything."""
        whole = self.options.endowment
        share = self.options.multiplier * whole / self.num_seats
        return share, whole + share * (self.num_seats - 1)

    def rules(self) -> str:
        """Return what a round pays."""
        return (
            f"Each player has {self.highest} points in each round, and the number is how many it gives to a pool. The "
            f"pool is multiplied by {self.options.multiplier:g} and shared equally by all {self.num_seats}. A player "
            "earns its share and what it has not given."
        )

    def exact_payoffs(self, numbers: Sequence[int]) -> list[Fraction]:
        """Return the payoff of each seat in a round."""
        share = Fraction(str(self.options.multiplier)) * sum(numbers) / self.num_seats
        return [self.highest - number + share for number in numbers]


class GivingPlayer(NumberPlayer):
    """Gives everything."""

    name = "giver"

    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return all points."""
        return self.highest


class ConditionalPlayer(NumberPlayer):
    """Gives everything first, then the mean of what the others gave last, rounded down."""

    name = "conditional"

    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return what the others gave."""
        if not numbers:
            return self.highest
        others = [number for place, number in enumerate(numbers[-1]) if place != seat]
        return sum(others) // len(others)
