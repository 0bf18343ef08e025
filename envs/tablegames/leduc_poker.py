"""Leduc poker (Southey et al. 2005): six cards, two rounds of betting, one public card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from turngym.envs.multiagent.equilibria import TabularPlayer, TabularPolicy, game_tree, make_solver
from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.types import JSONValue

RANKS = ("J", "Q", "K")
"""Ranks, the lowest first; the deck has two cards of each."""
STAKES = (2, 4)
"""Chips of a bet and of a raise in each round."""
_ANTE = 1
_MOST_RAISES = 2
_MOST = _ANTE + _MOST_RAISES * (STAKES[0] + STAKES[1])
_LONGEST_ROUND = 4
_DONE = {"check": "checks", "bet": "bets", "fold": "folds", "call": "calls", "raise": "raises"}
_MEANINGS = {form: action for action in _DONE for form in (action, f"i {action}")}
_ITERATIONS = 300


def legal(history: Sequence[str]) -> tuple[str, ...]:
    """Return the legal actions after the actions of a round, none where the round is over.

    >>> legal([]), legal(["bet"]), legal(["check", "bet", "raise"]), legal(["bet", "call"])
    (('check', 'bet'), ('fold', 'call', 'raise'), ('fold', 'call'), ())
    """
    if not history or history == ["check"]:
        return ("check", "bet")
    if history[-1] not in ("bet", "raise"):
        return ()
    return ("fold", "call", "raise") if history[-1] == "bet" else ("fold", "call")


def paid(rounds: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the chips that each seat has put in, the antes included.

    >>> paid([["bet", "raise", "call"], ["check", "bet"]])
    (5, 9)
    """
    chips = [_ANTE, _ANTE]
    for stake, history in zip(STAKES, rounds, strict=False):
        for place, action in enumerate(history):
            if action in ("bet", "call", "raise"):
                chips[place % 2] = chips[1 - place % 2] + (stake if action != "call" else 0)
    return chips[0], chips[1]


def strength(card: str, public: str) -> int:
    """Return the strength of a hand at the showdown: a pair beats every other hand."""
    return RANKS.index(card) + (len(RANKS) if card == public else 0)


class LeducPoker(TwoSeats):
    """One hand of Leduc poker; ``player_0`` acts first in both rounds.

    The deck has J, Q and K in two suits. Both seats ante 1 and get a card. In the first round bets and raises are 2
    chips; then a public card is shown, and in the second round they are 4. The reward is the chips won or lost, at
    most 13. The value of the game for ``player_0`` is about -0.0856. The anchor is the information set.

    >>> game = LeducPoker()
    >>> game.begin(np.random.default_rng(0), {"cards": ["J", "Q", "J"]})
    >>> for action in ["bet", "raise", "call", "check", "bet", "raise", "call"]:
    ...     rewards = game.commit({game.asked()[0]: action})
    >>> rewards
    (13.0, -13.0)
    """

    file_options = worded()
    score_range = (-float(_MOST), float(_MOST))

    name = "leduc_poker"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "alphabetically last", "winners' most frequent action"),
        "betting, raising or calling with every card wins the hands that a random opponent folds, and folds none; "
        "against opponents=equilibrium it loses chips.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "honest": "turngym.envs.tablegames.leduc_poker:HonestPlayer",
        "equilibrium": "turngym.envs.tablegames.leduc_poker:EquilibriumPlayer",
    }

    def setup(self) -> None:
        """Prepare a deal."""
        self._cards: list[str] = ["J", "Q", "K"]
        self._rounds: list[list[str]] = [[]]

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        return (
            "Leduc poker for two, one hand. The deck has six cards: J, Q and K, from low to high, two of each. Both "
            f"players ante {_ANTE} chip and get one card, which only they see. In each of two rounds {self.seats[0]} "
            "acts first: a player checks or bets; a player who faces a bet folds, which gives up all chips put in, "
            "calls, or raises; a raise can only be called or folded to. After the first round a public card is shown. "
            f"Bets and raises are {STAKES[0]} chips in the first round and {STAKES[1]} in the second. If nobody folds, "
            "a pair with the public card wins, else the higher card; equal cards split the pot.\n"
            "Answer with one word: check, bet, fold, call or raise."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Deal; ``{"cards": ["K", "J", "Q"]}`` deals ``player_0``, ``player_1`` and the public card."""
        self._restart(options, ("cards",))
        deck = sorted(2 * RANKS)
        cards = options.get("cards", [deck[int(pick)] for pick in generator.permutation(len(deck))[:3]])
        if not _is_deal(cards):
            raise ConfigError(f"cards must be three of J, Q and K, not all equal, got {cards!r}.")
        self._cards, self._rounds = list(cards), [[]]
        for seat in self.everyone:
            self.tell((seat,), f"Your card is {cards[seat]}. {self.seats[0]} acts first.")

    def asked(self) -> tuple[int, ...]:
        """Return the seat that acts."""
        return () if self._is_over else (len(self._rounds[-1]) % 2,)

    def phase(self) -> str:
        """Return the round."""
        return "first round" if len(self._rounds) == 1 else "second round"

    def prompt(self, seat: int) -> str:
        """Return the cards that the seat sees, the chips put in, and the choice."""
        public = "" if len(self._rounds) == 1 else f" The public card is {self._cards[2]}."
        chips = paid(self._rounds)
        *others, last = self.legal_actions(seat)
        return (
            f"Your card is {self._cards[seat]}.{public} You have put in {chips[seat]}, {self._other_name(seat)} "
            f"{chips[1 - seat]}. Do you {', '.join(others)} or {last}?"
        )

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return check and bet, or fold, call and, after the first bet of a round, raise."""
        return legal(self._rounds[-1])

    def read(self, seat: int, text: str) -> str:
        """Return the action that an answer names."""
        action = read_choice(text, _MEANINGS)
        if action not in (allowed := self.legal_actions(seat)):
            raise InvalidAction(f"You cannot {action} now: answer {', '.join(allowed[:-1])} or {allowed[-1]}.")
        return action

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take an action; show the public card after the first round, pay after the second or a fold."""
        ((seat, action),) = actions.items()
        self._rounds[-1].append(action)
        self.tell(self.everyone, f"{self.seats[seat]} {_DONE[action]}.")
        if action == "fold":
            return self._end((1 - seat,))
        if legal(self._rounds[-1]):
            return 0.0, 0.0
        if len(self._rounds) == 1:
            self._rounds.append([])
            self.tell(self.everyone, f"The public card is {self._cards[2]}.")
            return 0.0, 0.0
        self.tell(self.everyone, " ".join(f"{self.seats[seat]} shows {self._cards[seat]}." for seat in self.everyone))
        first, second = (strength(card, self._cards[2]) for card in self._cards[:2])
        return self._end(() if first == second else (0,) if first > second else (1,))

    def _end(self, winners: tuple[int, ...]) -> tuple[float, float]:
        self._is_over = True
        if not winners:
            self.tell(self.everyone, "The pot is split.")
            return 0.0, 0.0
        [winner] = winners
        won = float(paid(self._rounds)[1 - winner])
        self.tell(self.everyone, f"{self.seats[winner]} wins {won:.0f}.")
        rewards = (won, -won) if winner == 0 else (-won, won)
        self._earn(rewards)
        return rewards

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return float(_MOST if is_winner else -_MOST)

    def anchor(self, seat: int) -> str:
        """Return the seat's information set, such as ``K: bet call; J: check``."""
        if self._is_over:
            return f"over; {self._earned[seat]:+.0f} chips"
        shown = zip((self._cards[seat], self._cards[2]), self._rounds, strict=False)
        return "; ".join([" ".join([f"{card}:", *history]) for card, history in shown])

    def progress(self, seat: int) -> float:
        """Return the share of the rounds that is over, with the actions of the present one."""
        done = len(self._rounds) - 1 + len(self._rounds[-1]) / _LONGEST_ROUND
        return 1.0 if self._is_over else done / len(STAKES)

    def score(self, seat: int) -> float:
        """Return the chips won."""
        return self._earned[seat]

    def metrics(self) -> dict[str, float]:
        """Return the chips that ``player_0`` won, and whether the cards were shown."""
        has_shown = self._is_over and not self.forfeited and self._rounds[-1][-1] != "fold"
        return {"chips": self._earned[0], "showdown": float(has_shown)}

    def state(self) -> JSONValue:
        """Return cards, actions and chips."""
        return {
            "cards": list(self._cards),
            "rounds": [list(history) for history in self._rounds],
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        if not _is_deal(state["cards"]) or len(state["rounds"]) not in (1, 2):
            raise ValueError(f"the cards {state['cards']!r} and the rounds {state['rounds']!r}")
        self._cards, self._rounds = list(state["cards"]), [list(history) for history in state["rounds"]]
        self._load_earned(state["earned"])
        self._is_over = state["is_over"]

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Deal the other seat's card again, and the public one while it is hidden."""
        if self._is_over:
            return False
        known = [self._cards[seat], *self._cards[2 : len(self._rounds) + 1]]
        deck = sorted(2 * RANKS)
        for card in known:
            deck.remove(card)
        before = self._cards.copy()
        other, public = [deck[int(pick)] for pick in generator.permutation(len(deck))[:2]]
        self._cards[1 - seat] = other
        if len(self._rounds) == 1:
            self._cards[2] = public
        return self._cards != before


def _is_deal(cards: Any) -> bool:
    is_three = isinstance(cards, list | tuple) and len(cards) == 3 and all(isinstance(card, str) for card in cards)
    return is_three and set(cards) <= set(RANKS) and len(set(cards)) > 1


class HonestPlayer(Player):
    """Raises with a pair or a king, calls with a queen, and gives up a jack to a bet."""

    name = "honest"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return an action that shows the strength of the hand."""
        own, _, public = view.anchor.partition("; ")
        card = own[0]
        if card in ("K", public[:1]):
            return next(action for action in ("raise", "bet", "call") if action in view.legal_actions)
        wanted = ("check", "call" if card == "Q" else "fold")
        return next(action for action in wanted if action in view.legal_actions)


@cache
def equilibrium() -> TabularPolicy:
    """Return an approximate equilibrium: 300 iterations of CFR+, exploitability below 0.003."""
    game = LeducPoker()
    tree = game_tree(game)
    solver = make_solver("cfr+", tree)
    for _ in range(_ITERATIONS):
        solver.step()
    return TabularPolicy(game.name, tree.table(solver.average()), game.settings)


class EquilibriumPlayer(TabularPlayer):
    """Loses less than 0.003 chips per hand to any opponent; its policy is computed once per process."""

    name = "equilibrium"

    def __init__(self) -> None:
        super().__init__(equilibrium())
