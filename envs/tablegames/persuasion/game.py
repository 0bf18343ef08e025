"""Persuasion: a seller that sees the quality of a product recommends it or not, and a buyer decides.

The payoffs, the measures and the ranges of the options are those of GLEE (arXiv 2410.05254).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.speech import quoted, safe_speech
from turngym.envs.settings import worded
from turngym.envs.tablegames.persuasion.rules import Round, measures, recommends
from turngym.envs.tablegames.reading import READ_LIMIT, first_object, message_of, read_decision, split_speech
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.types import JSONValue

SELLER, BUYER = 0, 1
_SAY = "say: "
_ANSWERS = {
    **dict.fromkeys(("yes", "buy", "i buy", "recommend", "i recommend it", "accept"), "yes"),
    **dict.fromkeys(("no", "do not buy", "i do not buy", "do not recommend", "i do not recommend it", "reject"), "no"),
}

Probability: TypeAlias = Annotated[float, between(0, 1)]
Worth: TypeAlias = Annotated[float, between(0, 100)]


class Persuasion(TwoSeats):
    """A seller sees the quality of each product and recommends it or not; a buyer buys it or not.

    The reward of a sale is 1 for the seller, and the worth of the product minus 1, in prices, for the buyer. The score
    is the mean over the rounds, GLEE's gain. The larger sum has won, which compares a seller's number of sales with a
    buyer's surplus: read the score of each role.

    A long-lived buyer reads the quality after every round. A myopic one stands for a new buyer in each round: it only
    reads how many products were sold, and how many of them were good.

    Where the seller says any text, the buyers that play here and the measures take it as a recommendation if it has no
    word against the product: a heuristic.

    A seat that forfeits loses what the rest of the game could bring it at worst, and the other wins the most.

    >>> game = Persuasion(rounds=1)
    >>> game.begin(np.random.default_rng(0), {"prior": 0.5, "high_value": 2, "qualities": [True]})
    >>> _ = game.commit({0: game.read(0, '{"decision": "yes"}')})
    >>> game.commit({1: game.read(1, "[Buy]")})
    (1.0, 1.0)
    """

    class Options(TwoSeats.Options):
        rounds: Annotated[int, between(1, 100)] = 20
        """Products, one in each round."""
        price: Annotated[int, between(1, 10**9)] = 100
        """Price of a product, in money."""
        priors: tuple[Probability, ...] = (1 / 3, 0.5, 0.8)
        """Values from which the probability of a good product is sampled."""
        high_values: tuple[Worth, ...] = (1.2, 1.25, 2.0, 3.0, 4.0)
        """Values from which the worth of a good product to the buyer is sampled, in prices."""
        low_value: Worth = 0.0
        """Worth of a bad product to the buyer, in prices."""
        myopic_buyer: bool = False
        """Whether the buyer reads statistics of sales instead of the quality of each product."""
        seller_knows_values: bool = True
        """Whether the seller knows what products are worth to the buyer."""
        buyer_knows_prior: bool = True
        """Whether the buyer knows the probability of a good product."""
        seller_message: Literal["binary", "text"] = "binary"
        """Whether the seller says yes or no, or any text."""
        buyer_messages_allowed: bool = False
        """Whether the buyer may send a message with a decision."""

        def check(self) -> None:
            for name in ("priors", "high_values"):
                if not getattr(self, name):
                    raise OptionError(name, "must hold at least one number.")
            if self.low_value > min(self.high_values):
                raise OptionError("low_value", f"must be at most the least of high_values, got {self.low_value:g}.")

    options: Options
    file_options = worded()
    name = "persuasion"
    players: ClassVar[Mapping[str, str]] = {
        "commitment": "turngym.envs.tablegames.persuasion.players:CommitmentPlayer",
        "honest": "turngym.envs.tablegames.persuasion.players:HonestPlayer",
        "always_yes": "turngym.envs.tablegames.persuasion.players:AlwaysYesPlayer",
    }

    def setup(self) -> None:
        """Prepare an empty course."""
        options = self.options
        self._high = max(options.high_values)
        self.score_range = (min(0.0, options.low_value - 1), max(1.0, self._high - 1))
        self.prior, self.high_value, self._is_good = 0.5, self._high, False
        self.history: list[Round] = []
        self._message = ""
        self._given: tuple[bool, ...] = ()
        self._random = np.random.default_rng(0).random

    @property
    def _is_text(self) -> bool:
        return self.options.seller_message == "text"

    def role(self, seat: int) -> str:
        """Return ``"seller"`` or ``"buyer"``."""
        return "buyer" if seat == BUYER else "seller"

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        seller, buyer = self.seats
        options = self.options
        says = "describes it to" if self._is_text else "recommends it or not to"
        after = (
            f"{buyer} stands for a new buyer in each round, and only reads how many products were sold and how many of "
            "these were good."
            if options.myopic_buyer
            else f"After the round {buyer} reads whether it was good."
        )
        answer = 'The seller answers {"decision": "yes"} to recommend it or {"decision": "no"}'
        if self._is_text:
            answer = 'The seller answers with a text for the buyer: {"message": "..."}'
        message = '; it may add a message: {..., "message": "..."}' if options.buyer_messages_allowed else ""
        return (
            f"In each of {options.rounds} rounds, {seller} offers {buyer} a product for {options.price}, which is good "
            f"or bad. Only {seller} sees which, and {says} {buyer}, who buys it or not. A sale gains the seller 1, and "
            f"the buyer the worth of the product divided by the price, minus 1. {after}\n"
            f'{answer}. The buyer answers {{"decision": "yes"}} to buy it or {{"decision": "no"}}{message}.'
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw prior, worth and quality; ``prior``, ``high_value`` and ``qualities`` set them.

        Args:
            generator: Draws them, and the quality of later products.
            options: For example ``{"prior": 0.5, "high_value": 2, "qualities": [True, False]}``; ``qualities`` holds
                those of the first rounds.
        """
        self._restart(options, ("prior", "high_value", "qualities"))
        own = self.options
        pick, worth_pick = int(generator.integers(len(own.priors))), int(generator.integers(len(own.high_values)))
        self.prior = _number(options.get("prior", own.priors[pick]), "prior", 1)
        self.high_value = _number(options.get("high_value", own.high_values[worth_pick]), "high_value", self._high)
        self._given = _qualities(options.get("qualities", ()), own.rounds)
        self._random = generator.random
        self.history, self._message = [], ""
        chance = f"A product is good with probability {self.prior:.4g}. "
        good, bad = (worth * own.price for worth in (self.high_value, own.low_value))
        worth = f"A good one is worth {good:.6g} to the buyer, a bad one {bad:.6g}."
        seller = f"{chance}{worth if own.seller_knows_values else ''}".strip()
        buyer = f"{chance if own.buyer_knows_prior else ''}{worth}"
        self.tell((SELLER,), f"You are {self.seats[SELLER]}, the seller. {seller}")
        self.tell((BUYER,), f"You are {self.seats[BUYER]}, the buyer. {buyer}")
        self._next_product()

    def _next_product(self) -> None:
        number = len(self.history)
        self._is_good = self._given[number] if number < len(self._given) else bool(self._random() < self.prior)

    def phase(self) -> str:
        """Return ``"offer"`` or ``"answer"``."""
        return "answer" if self._message else "offer"

    def asked(self) -> tuple[int, ...]:
        """Return the seller, then the buyer."""
        return () if self._is_over else (BUYER if self._message else SELLER,)

    def prompt(self, seat: int) -> str:
        """Return the round, and what the seat decides from."""
        title = f"Round {len(self.history) + 1} of {self.options.rounds}."
        if seat == SELLER:
            question = "What do you say about it?" if self._is_text else "Do you recommend it?"
            return f"{title} The product is {_quality(self._is_good)}. {question}"
        sold = f" {_sales(self.history)}" if self.options.myopic_buyer else ""
        return f"{title}{sold} Do you buy the product for {self.options.price}?"

    def is_speech(self, seat: int) -> bool:
        """Return whether the seller says any text."""
        return self._is_text and seat == SELLER

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return yes and no; nothing where the seller says any text."""
        return () if self.is_speech(seat) else ("yes", "no")

    def read(self, seat: int, text: str) -> str:
        """Return ``"yes"`` or ``"no"``, or what the seller says."""
        if not self.is_speech(seat):
            return read_decision(text, _ANSWERS, seat == BUYER and self.options.buyer_messages_allowed)
        found = first_object(text[:READ_LIMIT])
        speech = safe_speech(message_of(found) if found else text.removeprefix(_SAY))
        if not speech:
            raise InvalidAction("Nothing was said: answer with a text for the buyer.", "unreadable")
        return f"{_SAY}{speech}"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take what the seller says, or sell the product or not."""
        ((seat, action),) = actions.items()
        if seat == SELLER:
            return self._say(action)
        bare, speech = split_speech(action)
        is_sold = bare == "yes"
        self.tell(self.everyone, f"{self.seats[BUYER]} {'buys' if is_sold else 'does not buy'} it.")
        if speech:
            self.tell(self.everyone, quoted(self.seats[BUYER], speech))
        if not self.options.myopic_buyer:
            self.tell(self.everyone, f"The product was {_quality(self._is_good)}.")
        worth = self.high_value if self._is_good else self.options.low_value
        gains = (1.0, worth - 1.0) if is_sold else (0.0, 0.0)
        self._earn(gains)
        self.history.append(Round(self._message, self._is_good, is_sold))
        self._message = ""
        self._is_over = len(self.history) == self.options.rounds
        if not self._is_over:
            self._next_product()
        return gains

    def _say(self, action: str) -> Sequence[float]:
        self._message = action.removeprefix(_SAY)
        seller = self.seats[SELLER]
        line = f"{seller} {'recommends' if action == 'yes' else 'does not recommend'} the product."
        self.tell(self.everyone, quoted(seller, self._message) if self._is_text else line)
        return 0.0, 0.0

    def _walkover(self, seat: int, is_winner: bool) -> float:
        left = self.options.rounds - len(self.history)
        most, least = (1.0, 0.0) if seat == SELLER else (self.high_value - 1, self.options.low_value - 1)
        return left * (max(0.0, most) if is_winner else min(0.0, least))

    def anchor(self, seat: int) -> str:
        """Return role, prior and worths, past rounds and this one as far as the seat knows them."""
        own = self.options
        prior = f"{self.prior:.12g}" if seat == SELLER or own.buyer_knows_prior else "unknown"
        worths = f"{self.high_value:.12g} and {own.low_value:.12g}"
        known = f"you are the {self.role(seat)}; prior {prior}; worth "
        known += worths if seat == BUYER or own.seller_knows_values else "unknown"
        if seat == BUYER and own.myopic_buyer:
            known += f"; {_sales(self.history)}"
        else:
            known += f"; past: {', '.join(map(_told, self.history))}"
        if self._is_over:
            return f"{known}; over"
        now = _quality(self._is_good) if seat == SELLER else self._message
        return f"{known}; now: {now}"

    def progress(self, seat: int) -> float:
        """Return the share of the decisions that are over."""
        return 1.0 if self._is_over else (2 * len(self.history) + bool(self._message)) / (2 * self.options.rounds)

    def score(self, seat: int) -> float:
        """Return the mean gain of the rounds that are over; after a forfeit, of all rounds."""
        return self._earned[seat] / (self.options.rounds if self.forfeited else max(1, len(self.history)))

    def metrics(self) -> dict[str, float]:
        """Return GLEE's measures, the gain of each seat per round, and the share of products that were recommended."""
        count = max(1, len(self.history))
        return {
            **measures(self.history),
            "self_gain_0": self.score(0),
            "self_gain_1": self.score(1),
            "recommended": sum(recommends(each.message) for each in self.history) / count,
        }

    def state(self) -> JSONValue:
        """Return prior, worth, rounds and the product of this one."""
        return {
            "prior": self.prior,
            "high_value": self.high_value,
            "history": [list(each) for each in self.history],
            "is_good": self._is_good,
            "message": self._message,
            "given": list(self._given),
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        rounds = [Round(*each) for each in state["history"]]
        flags = [state["is_good"], *state["given"], *[flag for each in rounds for flag in each[1:]]]
        texts = [state["message"], *[each.message for each in rounds]]
        if any(type(flag) is not bool for flag in flags) or not all(isinstance(text, str) for text in texts):
            raise ValueError("a round is a text and two times True or False")
        self.prior = _number(state["prior"], "prior", 1)
        self.high_value = _number(state["high_value"], "high_value", self._high)
        self.history, self._is_good, self._message = rounds, state["is_good"], state["message"]
        self._given, self._is_over = _qualities(state["given"], self.options.rounds), state["is_over"]
        self._load_earned(state["earned"])
        self._require_possible()

    def _require_possible(self) -> None:
        """Refuse a number of rounds, messages and gains that no game has."""
        count, most = len(self.history), self.options.rounds
        is_ended = count == most or (self._is_over and bool(self.forfeited))
        if type(self._is_over) is not bool or count > most or self._is_over != is_ended:
            raise ValueError(f"{count} of {most} rounds, and is_over {self._is_over!r:.80}")
        said = [each.message for each in self.history] + [self._message] * bool(self._message)
        if (count == most and self._message) or not all(
            each if self._is_text else each in ("yes", "no") for each in said
        ):
            raise ValueError(f"the message {self._message!r:.80}")
        good, bad = (sum(each.is_sold and each.is_good == kind for each in self.history) for kind in (True, False))
        worths = (self.high_value,) if self.options.seller_knows_values else (0.0, self._high)  # it may be drawn again
        buyer = [good * (worth - 1) + bad * (self.options.low_value - 1) for worth in worths]
        sums = [[float(good + bad)], buyer]
        if self._is_over and self.forfeited:
            sums = [
                [each + self._walkover(seat, is_winner) for each in sums[seat] for is_winner in (True, False)]
                for seat in self.everyone
            ]
        if not all(min(s) - 1e-6 <= own <= max(s) + 1e-6 for own, s in zip(self._earned, sums, strict=True)):
            raise ValueError(f"the gains {self._earned}")

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Draw again what the seat does not know: worth, prior, and the quality of what the buyer has not read."""
        if self._is_over:
            return False
        own = self.options
        before = (self.prior, self.high_value, self._is_good, list(self.history))
        if seat == SELLER and not own.seller_knows_values:
            self.high_value = own.high_values[int(generator.integers(len(own.high_values)))]
        if seat == BUYER:
            if not own.buyer_knows_prior:
                self.prior = own.priors[int(generator.integers(len(own.priors)))]
            self._is_good = bool(generator.random() < self.prior)
            if own.myopic_buyer:
                self.history = [
                    each if each.is_sold else each._replace(is_good=bool(generator.random() < self.prior))
                    for each in self.history
                ]
        return before != (self.prior, self.high_value, self._is_good, self.history)


def _quality(is_good: bool) -> str:
    return "good" if is_good else "bad"


def _told(each: Round) -> str:
    recommended = "yes" if recommends(each.message) else "no"
    return f"{recommended} {_quality(each.is_good)} {'sold' if each.is_sold else 'unsold'}"


def _sales(history: Sequence[Round]) -> str:
    """Return the statistics that a myopic buyer reads."""
    sold = [each.is_good for each in history if each.is_sold]
    return f"{len(sold)} of {len(history)} products were sold, {sum(sold)} of them good."


def _number(value: object, name: str, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ConfigError(f"{name} of a game of persuasion must be a number in [0, {most:g}], got {value!r}.")
    return float(value)


def _qualities(values: object, rounds: int) -> tuple[bool, ...]:
    if isinstance(values, list | tuple) and len(values) <= rounds and all(type(value) is bool for value in values):
        return tuple(values)
    raise ConfigError(f"qualities must be a list of up to {rounds} True and False, got {values!r:.80}.")
