"""Bargaining by alternating offers: two seats divide a pie that loses value with every round.

The payoffs, the measures and the ranges of the options are those of GLEE (arXiv 2410.05254), where the seats are called
Alice and Bob: seat 0 proposes in odd rounds and seat 1 in even ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.tablegames.alternating import AlternatingOffers
from turngym.envs.tablegames.bargaining.reading import read_offer
from turngym.envs.tablegames.bargaining.rules import efficiency, fairness, utilities
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

Discount: TypeAlias = Annotated[float, between(0, 1)]


class Bargaining(AlternatingOffers):
    """Divide a pie by alternating offers; agreement pays both their gain, no agreement nothing.

    A seat that forfeits leaves the whole pie to the other.

    The gain of a seat is its share of the pie times its discount to the power of the rounds gone by, in [0, 1]; it is
    its reward and its score. The seat with the larger gain has won. Seats know the last round only if it is the
    twentieth or earlier.

    >>> game = Bargaining()
    >>> game.begin(np.random.default_rng(0), {"discounts": [0.9, 0.8]})
    >>> _ = game.commit({0: game.read(0, '{"alice_gain": 60, "bob_gain": 40}')})
    >>> _ = game.commit({1: game.read(1, "[Reject]")})
    >>> _ = game.commit({1: game.read(1, "keep 50")})
    >>> [round(gain, 4) for gain in game.commit({0: game.read(0, "accept")})]
    [0.45, 0.4]
    """

    class Options(AlternatingOffers.Options):
        pie: Annotated[int, between(1, 10**9)] = 100
        """Size of the pie."""
        discounts: tuple[Discount, ...] = (1.0, 0.95, 0.9, 0.8)
        """Values from which each seat's discount is sampled."""

        def check(self) -> None:
            self.divide("pie", self.pie)
            if not self.discounts:
                raise OptionError("discounts", "must hold at least one number.")

    options: Options

    name = "bargaining"
    offer_verb = "keep"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically last", "winners' most frequent action"),
        "asking for more than half and rejecting everything wins as soon as a random opponent accepts, which it does "
        "half of the time; opponents=subgame_perfect does not.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "subgame_perfect": "turngym.envs.tablegames.bargaining.players:SubgamePerfectPlayer",
        "even_split": "turngym.envs.tablegames.bargaining.players:EvenSplitPlayer",
    }

    def setup(self) -> None:
        """Prepare an empty course."""
        super().setup()
        self.pie = self.most = self.options.pie
        self._choices = tuple(map(float, self.options.discounts))
        self.discounts = (1.0, 1.0)
        """The discount of each seat in this game."""

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        end = f"Without an agreement in round {self.max_rounds}" if self._is_end_told else "Without an agreement"
        known = "both discounts" if self.complete_information else "your own discount, but not the other's"
        message = '; you may add a message: {..., "message": "..."}' if self.options.messages_allowed else ""
        unit = "" if self.step == 1 else f" Shares are multiples of {self.step}."
        keep = 3 * (self.pie // self.step) // 5 * self.step
        return (
            f"Two players divide {self.pie}. {self.seats[0]} proposes a division in odd rounds, {self.seats[1]} in "
            "even rounds; the other accepts or rejects it. An agreement in round t is worth a player's share times "
            f"its discount to the power of t - 1. {end} both get nothing. You know {known}.{unit}\n"
            "A proposal is JSON that says what you keep and what the other gets: "
            f'{{"keep": {keep}, "give": {self.pie - keep}}}. '
            'An answer is {"decision": "accept"} or {"decision": "reject"}. '
            f"Answer with one of them{message}."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw the discounts; ``{"discounts": [0.9, 0.8]}`` sets them."""
        self._restart(options, ("discounts",))
        picks = generator.integers(len(self._choices), size=2)
        given = options.get("discounts")
        found = _checked(given) if given is not None else tuple([self._choices[int(pick)] for pick in picks])
        self.discounts = _two(found)
        self._restart_offers()
        for seat in self.everyone:
            others = f", {self._other_name(seat)}'s is {self.discounts[1 - seat]:.12g}"
            more = others if self.complete_information else ""
            self.tell((seat,), f"You are {self.seats[seat]}. Your discount is {self.discounts[seat]:.12g}{more}.")

    def _question(self) -> str:
        if self._offer is None:
            return f"How do you divide {self.pie}?"
        return f"You would get {self.pie - self._offer} of {self.pie}. Do you accept or reject?"

    def _read_offer(self, seat: int, text: str) -> str:
        action, keep = read_offer(text, seat, self.pie, self.options.messages_allowed)
        if keep > self.pie or keep % self.step:
            unit = "" if self.step == 1 else f", a multiple of {self.step}"
            raise InvalidAction(f"You may keep 0 to {self.pie}{unit}.")
        return action

    def _offer_line(self, offer: int) -> str:
        return f"{self.seats[self._proposer]} offers to keep {offer} and to give {self.pie - offer}."

    def _agree(self) -> tuple[float, float]:
        self._agreed = self._settled()
        gains = self._gains()
        shares = self._agreed, self.pie - self._agreed
        for seat in self.everyone:
            self.tell((seat,), f"You get {shares[seat]}, which is worth {gains[seat] * self.pie:.6g} in this round.")
        return gains

    def _settled(self) -> int:
        assert self._offer is not None
        return self._offer if self._proposer == 0 else self.pie - self._offer

    def _gains(self) -> tuple[float, float]:
        assert self._agreed is not None
        return utilities(self._agreed / self.pie, self.round, self.discounts)

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return self.discounts[seat] ** (self.round - 1) if is_winner else 0.0  # the whole pie, or nothing

    def anchor(self, seat: int) -> str:
        """Return discounts, round and offer as far as the seat knows them."""
        other = f"{self.discounts[1 - seat]:.12g}" if self.complete_information else "unknown"
        known = f"pie {self.pie} in steps of {self.step}; discounts {self.discounts[seat]:.12g} and {other}"
        if self._is_over:
            return f"{known}; over; gain {self._earned[seat]:.6g}"
        now = "no offer" if self._offer is None else f"{self.seats[self._proposer]} keeps {self._offer}"
        return f"{known}; {self._round_name}; {now}"

    def metrics(self) -> dict[str, float]:
        """Return GLEE's measures: efficiency, fairness (0 without an agreement), each seat's gain, and the round."""
        return {
            "efficiency": efficiency((self._earned[0], self._earned[1])),
            "fairness": 0.0 if self._agreed is None else fairness(self._agreed / self.pie),
            **super().metrics(),
        }

    def state(self) -> JSONValue:
        """Return discounts, round, offer and result."""
        return {"discounts": list(self.discounts), **super().state()}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        self.discounts = _two(state["discounts"])
        super().load(state)

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw another discount for the other seat, where the seat does not know it."""
        others = sorted({*self._choices} - {self.discounts[1 - seat]})
        if self.complete_information or not others or self._is_over:
            return False
        found = others[int(generator.integers(len(others)))]
        self.discounts = (self.discounts[0], found) if seat == 0 else (found, self.discounts[1])
        return True


def _two(discounts: object) -> tuple[float, float]:
    """Return the discounts of both seats, or raise."""
    found = _checked(discounts)
    if len(found) != 2:
        raise ConfigError(f"discounts of a game of bargaining are two numbers in [0, 1], got {discounts!r:.200}.")
    return found[0], found[1]


def _checked(discounts: object) -> tuple[float, ...]:
    """Return discounts as numbers, or raise."""
    if isinstance(discounts, str) or not isinstance(discounts, Sequence):
        raise ConfigError(f"discounts of bargaining must be a list of numbers in [0, 1], got {discounts!r}.")
    for discount in discounts:
        if isinstance(discount, bool) or not isinstance(discount, int | float) or not 0 <= discount <= 1:
            raise ConfigError(f"discounts of bargaining must be a list of numbers in [0, 1], got {discounts!r}.")
    return tuple(float(discount) for discount in discounts)
