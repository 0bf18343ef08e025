"""Negotiation of a price: a seller and a buyer of one product with values of their own.

The measures and the ranges of the options are those of GLEE (arXiv 2410.05254), where the seats are called Alice and
Bob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.tablegames.alternating import AlternatingOffers
from turngym.envs.tablegames.price_negotiation.reading import read_price
from turngym.envs.tablegames.price_negotiation.rules import BUYER, SELLER, efficiency, fairness, gain
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

_LEAVING = ("leave", "leaves", "i leave", "selltojhon", "buyfromjhon", "sell to john", "buy from john")

Multiple: TypeAlias = Annotated[float, between(0, 2)]


class PriceNegotiation(AlternatingOffers):
    """Agree on the price of a product that has a value for its seller and another for its buyer, or leave.

    A seat gains the difference between the price and its value, as a multiple of ``unit``; without an agreement
    nothing, as it trades elsewhere at its own value. The gain is its reward and its score, and the larger one has won.
    Seats know the last round only if it is the twentieth or earlier.

    Only 6 of the 16 pairs of default values have a surplus. A score of 0 is best where the buyer's value is not above
    the seller's; success means more than the other, not a good deal.

    A seat that forfeits gets the worst price and the other seat the best one.

    >>> game = PriceNegotiation()
    >>> game.begin(np.random.default_rng(0), {"values": [80, 120]})
    >>> _ = game.commit({0: game.read(0, '{"product_price": 120}')})
    >>> _ = game.commit({1: game.read(1, "RejectOffer")})
    >>> _ = game.commit({1: game.read(1, "price 90")})
    >>> game.commit({0: game.read(0, "accept")})
    (0.1, 0.3)
    """

    class Options(AlternatingOffers.Options):
        max_rounds: Annotated[int, between(1, 1000)] = 10
        """Rounds after which the game ends without an agreement."""
        unit: Annotated[int, between(1, 10**8)] = 100
        """Money in which values and gains are counted; prices go up to twice as much."""
        seller_values: tuple[Multiple, ...] = (0.8, 1.0, 1.2, 1.5)
        """Values from which the seller's is sampled, in units."""
        buyer_values: tuple[Multiple, ...] = (0.8, 1.0, 1.2, 1.5)
        """Values from which the buyer's is sampled, in units."""

        def check(self) -> None:
            self.divide("unit", self.unit)
            for name in ("seller_values", "buyer_values"):
                if not getattr(self, name):
                    raise OptionError(name, "must hold at least one number.")

    options: Options
    score_range = (-2.0, 2.0)
    name = "price_negotiation"
    offer_verb = "price"
    answers: ClassVar[Mapping[str, str]] = {
        **AlternatingOffers.answers,
        **{"acceptoffer": "accept", "rejectoffer": "reject"},
        **dict.fromkeys(_LEAVING, "leave"),
    }
    players: ClassVar[Mapping[str, str]] = {
        "subgame_perfect": "turngym.envs.tablegames.price_negotiation.players:SubgamePerfectPlayer",
        "fair_price": "turngym.envs.tablegames.price_negotiation.players:FairPricePlayer",
    }

    def setup(self) -> None:
        """Prepare an empty course."""
        super().setup()
        options = self.options
        self.unit, self.most = options.unit, 2 * options.unit
        self._choices = tuple(
            [
                tuple(sorted({round(m * self.unit) for m in each}))
                for each in (options.seller_values, options.buyer_values)
            ]
        )
        self.values = (self.unit, self.unit)
        """The value of each seat in this game, in money."""

    def role(self, seat: int) -> str:
        """Return ``"seller"`` or ``"buyer"``."""
        return "buyer" if seat == BUYER else "seller"

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        end = f"Without an agreement in round {self.max_rounds}" if self._is_end_told else "Without an agreement"
        message = '; you may add a message: {..., "message": "..."}' if self.options.messages_allowed else ""
        unit = "" if self.step == 1 else f", in multiples of {self.step}"
        known = "You know both values."
        if not self.complete_information:
            seller, buyer = (" or ".join(map(str, each)) for each in self._choices)
            known = f"You know your own value; the seller's is {seller}, the buyer's is {buyer}, all equally likely."
        return (
            f"{self.seats[SELLER]} sells a product to {self.seats[BUYER]}, to whom it has another value. "
            f"{self.seats[SELLER]} offers a price in odd rounds, {self.seats[BUYER]} in even rounds; the other accepts "
            "or rejects it, or leaves. At an agreement the seller gains the price minus the seller's value, and the "
            f"buyer gains the buyer's value minus the price. {end}, or if one leaves, both get nothing. {known}\n"
            f'An offer is JSON with a whole price from 0 to {self.most}{unit}: {{"price": {self.unit}}}. An answer is '
            '{"decision": "accept"}, {"decision": "reject"} or {"decision": "leave"}. '
            f"Answer with one of them{message}."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw the values; ``{"values": [80, 120]}`` sets them, in money."""
        self._restart(options, ("values",))
        picks = [each[int(generator.integers(len(each)))] for each in self._choices]
        given = options.get("values", picks)
        if not _are_values(given, self.most):
            raise ConfigError(
                f"values of a game of {self.name} are two whole numbers in [0, {self.most}], got {given!r}."
            )
        self.values = (given[0], given[1])
        self._restart_offers()
        for seat in self.everyone:
            other = f", and {self.values[1 - seat]} to {self._other_name(seat)}" if self.complete_information else ""
            worth = f"The product is worth {self.values[seat]} to you{other}."
            self.tell((seat,), f"You are {self.seats[seat]}, the {self.role(seat)}. {worth}")

    def _question(self) -> str:
        if self._offer is None:
            return "What price do you offer?"
        return f"The price is {self._offer}. Do you accept, reject or leave?"

    def _read_offer(self, seat: int, text: str) -> str:
        action, price = read_price(text, self.options.messages_allowed)
        if price > self.most or price % self.step:
            unit = "" if self.step == 1 else f", a multiple of {self.step}"
            raise InvalidAction(f"A price is 0 to {self.most}{unit}.")
        return action

    def _offer_line(self, offer: int) -> str:
        return f"{self.seats[self._proposer]} offers the price {offer}."

    def _agree(self) -> tuple[float, float]:
        self._agreed = self._settled()
        for seat in self.everyone:
            self.tell((seat,), f"You gain {gain(self._agreed, self.values[seat], seat)}.")
        return self._gains()

    def _settled(self) -> int:
        assert self._offer is not None
        return self._offer

    def _gains(self) -> tuple[float, float]:
        assert self._agreed is not None
        first, second = (gain(self._agreed, self.values[seat], seat) / self.unit for seat in self.everyone)
        return first, second

    def _walkover(self, seat: int, is_winner: bool) -> float:
        price = self.most if is_winner == (seat == SELLER) else 0
        return gain(price, self.values[seat], seat) / self.unit

    def anchor(self, seat: int) -> str:
        """Return values, round and offer as far as the seat knows them."""
        known = f"you are the {self.role(seat)}; values {self.values[seat]} and "
        hidden = "/".join(map(str, self._choices[1 - seat]))
        known += str(self.values[1 - seat]) if self.complete_information else hidden
        if self._is_over:
            return f"{known}; over; gain {self._earned[seat]:.6g}"
        now = "no offer" if self._offer is None else f"price {self._offer}"
        return f"{known} in steps of {self.step}; {self._round_name}; {now}"

    def metrics(self) -> dict[str, float]:
        """Return GLEE's measures: efficiency, fairness (1 without a trade), each seat's gain; and the round."""
        return {
            "efficiency": efficiency(self.values, self._agreed is not None),
            "fairness": fairness(self._agreed, self.values, self.unit),
            **super().metrics(),
        }

    def state(self) -> JSONValue:
        """Return values, round, offer and result."""
        return {"values": list(self.values), **super().state()}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        if not _are_values(state["values"], self.most):
            raise ValueError(f"values must be two whole numbers in [0, {self.most}], got {state['values']!r:.80}")
        self.values = (state["values"][0], state["values"][1])
        super().load(state)

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw another value for the other seat, where the seat does not know it."""
        others = sorted({*self._choices[1 - seat]} - {self.values[1 - seat]})
        if self.complete_information or not others or self._is_over:
            return False
        found = others[int(generator.integers(len(others)))]
        self.values = (self.values[0], found) if seat == 0 else (found, self.values[1])
        return True


def _are_values(values: object, most: int) -> bool:
    return (
        isinstance(values, Sequence)
        and len(values) == 2
        and all(type(value) is int and 0 <= value <= most for value in values)
    )
