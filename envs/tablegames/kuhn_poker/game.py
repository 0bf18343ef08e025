"""Kuhn poker: jack, queen and king, an ante of 1 and one bet of 1; the seats take turns to act first.

Rules: each seat antes 1 and is dealt one of the three cards. The first seat checks or bets 1. After a check the second
seat checks or bets, after a bet the seat that faces it folds or calls. The higher card wins the pot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.kuhn_poker.rules import CARDS, DEALS, information_set, legal, winnings
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats, signs
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

_MEANINGS = {
    **{action: action for action in ("check", "bet", "fold", "call")},
    **{"pass": "check", "raise": "bet", "bet 1": "bet", "call 1": "call"},
    **{f"i {action}": action for action in ("check", "bet", "fold", "call")},
}
_DONE = {"check": "checks", "bet": "bets", "fold": "folds", "call": "calls"}


class KuhnPoker(TwoSeats):
    """One or more hands of Kuhn poker; the seat that acts first changes with every hand.

    The first hand of ``player_0`` is worth -1/18 to it between perfect players. The anchor of a single hand is the
    information set, such as ``K check bet``.

    >>> game = KuhnPoker()
    >>> game.begin(np.random.default_rng(0), {"deals": [["K", "J"]]})
    >>> game.anchor(0), game.legal_actions(0), game.read(0, "I have to [Bet]!")
    ('K', ('check', 'bet'), 'bet')
    """

    class Options(TwoSeats.Options):
        hands: Annotated[int, between(1, 1000)] = 1
        """Hands in a game."""
        reward: Literal["chips", "win"] = "chips"
        """``chips`` pays the winnings of every hand when it ends, ``win`` pays +1, -1 or 0 for more, fewer or as many
        chips than the other at the end of the game."""

    options: Options

    file_options = worded()
    score_range = (-2.0, 2.0)

    name = "kuhn_poker"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "winners' most frequent action"),
        "betting and calling with every card wins each hand that a random opponent folds, a king as often as a jack, "
        "and folds none; against opponents=equilibrium it loses chips.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "equilibrium": "turngym.envs.tablegames.kuhn_poker.players:EquilibriumPlayer",
    }

    def setup(self) -> None:
        """Prepare an empty course."""
        self.hands, self.reward = self.options.hands, self.options.reward
        self._deals: list[tuple[str, str]] = []
        self._hand = self._showdowns = 0
        self._history: tuple[str, ...] = ()

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        hands = "one hand" if self.hands == 1 else f"{self.hands} hands, taking turns to act first"
        return (
            f"Kuhn poker for two: {hands}. The deck is J, Q and K, from low to high. Both players ante 1 chip and get "
            "one card, which only they see. The first player checks or bets 1 chip. After a check the second player "
            "checks or bets. A player who faces a bet folds, which gives up the ante, or calls with 1 chip. If nobody "
            "folds, the higher card wins.\n"
            "Answer with one word: check, bet, fold or call."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Deal every hand of the game; ``{"deals": [["K", "J"], ...]}`` deals ``player_0`` and ``player_1`` these."""
        self._restart(options, ("deals",))
        given = options.get("deals")
        if given is None:
            picks = generator.integers(len(DEALS), size=self.hands)
            self._deals = [DEALS[int(pick)] for pick in picks]
        else:
            self._deals = self._checked(given)
        self._hand, self._history, self._showdowns = 0, (), 0
        self._tell_cards()

    def _checked(self, given: Any) -> list[tuple[str, str]]:
        """Return deals that were given, or raise."""
        known = {str(list(deal)): deal for deal in DEALS}
        is_list = isinstance(given, list | tuple)
        names = [str(list(deal)) for deal in given if isinstance(deal, list | tuple)] if is_list else []
        if len(names) != self.hands or not set(names) <= set(known) or len(given) != self.hands:
            raise ConfigError(f"deals must be {self.hands} pairs of different cards of J, Q and K, got {given!r}.")
        return [known[name] for name in names]

    def _tell_cards(self) -> None:
        title = "" if self.hands == 1 else f"Hand {self._hand + 1} of {self.hands}. "
        for seat, card in enumerate(self._deals[self._hand]):
            self.tell((seat,), f"{title}Your card is {card}. {self.seats[self._hand % 2]} acts first.")

    @property
    def _actor(self) -> int:
        return (self._hand + len(self._history)) % 2

    def asked(self) -> tuple[int, ...]:
        """Return the seat that acts."""
        return () if self._is_over else (self._actor,)

    def prompt(self, seat: int) -> str:
        """Return the seat's card, what happened in this hand, and the choice."""
        first, second = self.legal_actions(seat)
        return f"Your card is {self._deals[self._hand][seat]}. Do you {first} or {second}?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return check and bet, or fold and call."""
        return legal(self._history)

    def read(self, seat: int, text: str) -> str:
        """Return the action that an answer names."""
        action = read_choice(text, _MEANINGS)
        allowed = legal(self._history)
        if action not in allowed:
            raise InvalidAction(f"You cannot {action} now: answer {allowed[0]} or {allowed[1]}.")
        return action

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take an action; after the last one of a hand, pay and deal again."""
        ((seat, action),) = actions.items()
        self._history = (*self._history, action)
        self.tell(self.everyone, f"{self.seats[seat]} {_DONE[action]}.")
        return (0.0, 0.0) if legal(self._history) else self._end_hand()

    def _end_hand(self) -> tuple[float, float]:
        """Show the cards where nobody folded, pay, and deal the next hand."""
        deal, first = self._deals[self._hand], self._hand % 2
        won = winnings(deal[first], deal[1 - first], self._history)
        paid = (float(won), -float(won)) if first == 0 else (-float(won), float(won))
        if self._history[-1] != "fold":
            self._showdowns += 1
            self.tell(self.everyone, f"{self.seats[0]} shows {deal[0]}, {self.seats[1]} shows {deal[1]}.")
        self.tell(self.everyone, f"{self.seats[0 if paid[0] > 0 else 1]} wins {abs(won)}.")
        self._earn(paid)
        self._hand, self._history = self._hand + 1, ()
        if self._hand == self.hands:
            self._is_over = True
        else:
            self._tell_cards()
        if self.reward == "chips":
            return paid
        return signs(*self._earned) if self._is_over else (0.0, 0.0)

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return 2.0 * (self.hands - self._hand) * (1 if is_winner else -1)

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game: both chips of every hand that is left go to the other seat."""
        paid = super().forfeit(seats)
        self._hand, self._history = self.hands, ()
        return paid if self.reward == "chips" else [-1.0 if seat in seats else 1.0 for seat in self.everyone]

    def anchor(self, seat: int) -> str:
        """Return the seat's information set, and how the game stands if it has several hands."""
        chips = f"{self._earned[seat]:+.0f} chips"
        if self._is_over:
            return f"over; {chips}"
        known = information_set(self._deals[self._hand][seat], self._history)
        return known if self.hands == 1 else f"{known}; hand {self._hand + 1} of {self.hands}; {chips}"

    def progress(self, seat: int) -> float:
        """Return the share of the hands that are over, with the actions of the present one."""
        return 1.0 if self._is_over else (self._hand + len(self._history) / 3) / self.hands

    def score(self, seat: int) -> float:
        """Return the chips won per hand that is over."""
        return self._earned[seat] / max(1, self._hand)

    def metrics(self) -> dict[str, float]:
        """Return the chips that ``player_0`` won per hand, and the share of hands that came to a showdown."""
        return {"chips_per_hand": self.score(0), "showdown_rate": self._showdowns / max(1, self._hand)}

    def state(self) -> JSONValue:
        """Return deals, actions and chips."""
        return {
            "deals": [list(deal) for deal in self._deals],
            "hand": self._hand,
            "history": list(self._history),
            "showdowns": self._showdowns,
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        self._deals = [(first, second) for first, second in state["deals"]]
        self._hand, self._history = state["hand"], tuple(state["history"])
        self._showdowns = state["showdowns"]
        self._load_earned(state["earned"])
        self._is_over = state["is_over"]
        are_cards = all(first != second and {first, second} <= set(CARDS) for first, second in self._deals)
        if not are_cards or len(self._deals) != self.hands or self._hand not in range(self.hands + bool(self._is_over)):
            raise ValueError(f"the deals {self._deals!r} and the hand {self._hand!r}")

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Give the other seat the third card, and deal all later hands again."""
        if self._is_over:
            return False
        own = self._deals[self._hand][seat]
        (third,) = set(CARDS) - set(self._deals[self._hand])
        self._deals[self._hand] = (own, third) if seat == 0 else (third, own)
        later = range(self._hand + 1, self.hands)
        for hand, pick in zip(later, generator.integers(len(DEALS), size=len(later)), strict=True):
            self._deals[hand] = DEALS[int(pick)]
        return True
