"""Boast: a small game of talk with a known equilibrium, in which every action is a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice, simplified
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.types import JSONValue

CARDS = ("high", "low")
MODEST = ("Let us just show.", "I only show my card.", "No raise, we show.", "We show our cards now.")
BOASTS = ("I raise, mine is great!", "A great card: I raise!", "I raise to two, great!", "Great luck, so I raise!")
BELIEFS = ("I believe you and fold.", "I fold, I believe it.", "You win, I fold here.", "I fold, the pot is yours.")
CHALLENGES = ("Liar, I pay two!", "I pay to see, liar!", "No, liar! I pay.", "I pay two, you liar!")
_MEANINGS = {simplified(text): text for text in (*MODEST, *BOASTS, *BELIEFS, *CHALLENGES)}


class Boast(TwoSeats):
    """A speaker with a high or a low card says one of eight sentences; a listener answers a boast with another.

    Both seats put in 1. After a modest sentence the card is shown: the speaker wins 1 with the high card and loses 1
    with the low one. A boast raises to 2: if the listener believes it, the speaker wins 1; if it challenges, the
    speaker wins 2 with the high card and loses 2 with the low one. In equilibrium the speaker boasts with every high
    card and a third of the low ones, the listener challenges two thirds of the boasts, and the speaker wins 1/3.

    >>> game = Boast()
    >>> game.begin(np.random.default_rng(0), {"card": "low"})
    >>> game.commit({0: BOASTS[0]}), game.commit({1: CHALLENGES[0]})
    ((0.0, 0.0), (-2.0, 2.0))
    """

    file_options = worded()
    score_range = (-2.0, 2.0)
    name = "boast"

    def setup(self) -> None:
        """Prepare a card."""
        self._card, self._said = CARDS[0], ""

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        return (
            f"{self.seats[0]} has a high or a low card, both equally likely, which {self.seats[1]} does not see, and "
            f"says a sentence. After a modest one the card is shown: {self.seats[0]} wins 1 if it is high and loses 1 "
            f"if it is low. After a boast {self.seats[1]} believes it, and {self.seats[0]} wins 1, or challenges it, "
            f"and {self.seats[0]} wins 2 if the card is high and loses 2 if it is low.\n"
            f"Modest: {' '.join(MODEST)}\nBoasts: {' '.join(BOASTS)}\n"
            f"Beliefs: {' '.join(BELIEFS)}\nChallenges: {' '.join(CHALLENGES)}\n"
            "Answer with one of these sentences."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Deal; ``{"card": "low"}`` deals that card."""
        self._restart(options, ("card",))
        card = options.get("card", CARDS[int(generator.integers(len(CARDS)))])
        if card not in CARDS:
            raise ConfigError(f"card must be high or low, got {card!r}.")
        self._card, self._said = card, ""
        self.tell((0,), f"Your card is {card}.")

    def asked(self) -> tuple[int, ...]:
        """Return the seat that speaks."""
        return () if self._is_over else (int(bool(self._said)),)

    def prompt(self, seat: int) -> str:
        """Return the question."""
        return f"Your card is {self._card}. What do you say?" if seat == 0 else "What do you answer?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the sentences of a seat."""
        return (*MODEST, *BOASTS) if seat == 0 else (*BELIEFS, *CHALLENGES)

    def is_speech(self, seat: int) -> bool:
        """Return True: every action is a sentence."""
        return True

    def read(self, seat: int, text: str) -> str:
        """Return the sentence that an answer names."""
        sentence = read_choice(text, _MEANINGS)
        if sentence not in self.legal_actions(seat):
            raise InvalidAction("That is a sentence of the other player.")
        return sentence

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a sentence; pay after a modest one and after an answer."""
        ((seat, sentence),) = actions.items()
        self.tell(self.everyone, f"{self.seats[seat]} says: {sentence}")
        if sentence in BOASTS:
            self._said = sentence
            return 0.0, 0.0
        self._is_over = True
        stake = 2.0 if sentence in CHALLENGES else 1.0
        won = stake if sentence in BELIEFS or self._card == CARDS[0] else -stake
        if sentence not in BELIEFS:
            self.tell(self.everyone, f"The card is {self._card}.")
        self._earn((won, -won))
        return won, -won

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return 2.0 if is_winner else -2.0

    def anchor(self, seat: int) -> str:
        """Return the card for the speaker, the boast for the listener."""
        if self._is_over:
            return f"over; {self._earned[seat]:+.0f}"
        return f"your card is {self._card}" if seat == 0 else f"{self.seats[0]} says: {self._said}"

    def progress(self, seat: int) -> float:
        """Return 1 at the end, half after a boast."""
        return 1.0 if self._is_over else 0.5 * bool(self._said)

    def score(self, seat: int) -> float:
        """Return what the seat has won."""
        return self._earned[seat]

    def state(self) -> JSONValue:
        """Return card, boast and result."""
        return {"card": self._card, "said": self._said, "earned": list(self._earned), "is_over": self._is_over}

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        if state["card"] not in CARDS or state["said"] not in ("", *BOASTS):
            raise ValueError(f"the card {state['card']!r} and the boast {state['said']!r}")
        self._card, self._said, self._is_over = state["card"], state["said"], state["is_over"]
        self._load_earned(state["earned"])

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Deal the speaker's card again for the listener."""
        if self._is_over or seat == 0:
            return False
        before, self._card = self._card, CARDS[int(generator.integers(len(CARDS)))]
        return self._card != before
