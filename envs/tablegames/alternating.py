"""Base of the games of alternating offers: one seat offers, the other answers, and a rejection exchanges the roles."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from turngym.envs.multiagent.speech import quoted
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_decision, split_speech
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.options import OptionError, between
from turngym.types import JSONValue

LONGEST_TOLD = 20
"""The seats are told the number of rounds if it is at most this, as in GLEE."""
LIST_LIMIT = 1001
"""Offers are listed as legal actions up to this many."""
ACCEPTING = ("accept", "accepts", "i accept", "yes", "agree", "i agree")
REJECTING = ("reject", "rejects", "i reject", "no", "refuse", "deny", "decline")


class AlternatingOffers(TwoSeats):
    """Seat 0 makes an offer in odd rounds and seat 1 in even ones; an offer is a whole number."""

    class Options(TwoSeats.Options):
        step: int = 1
        """Offers are multiples of it."""
        max_rounds: Annotated[int, between(1, 1000)] = 12
        """Rounds after which the game ends without an agreement."""
        complete_information: bool = True
        """Whether a seat knows the discount or value of the other."""
        messages_allowed: bool = False
        """Whether a seat may send a message with an offer or an answer."""

        def divide(self, name: str, amount: int) -> None:
            """Refuse a step that does not divide an option."""
            self.require("step", between(1, amount))
            if amount % self.step:
                raise OptionError("step", f"must divide the {name} of {amount}, got {self.step}.")

    options: Options
    file_options = worded()
    answers: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(ACCEPTING, "accept"),
        **dict.fromkeys(REJECTING, "reject"),
    }
    """Simplified text -> answer to an offer."""
    offer_verb: ClassVar[str]
    """First word of an offer, before its number."""
    most: int
    """Largest offer."""

    def setup(self) -> None:
        """Prepare an empty course."""
        self.max_rounds = self.options.max_rounds
        self.step = self.options.step
        self.complete_information = self.options.complete_information
        self._restart_offers()

    def _restart_offers(self) -> None:
        self.round = 1
        self._offer: int | None = None
        self._agreed: int | None = None

    @property
    def _is_end_told(self) -> bool:
        return self.max_rounds <= LONGEST_TOLD

    @property
    def _proposer(self) -> int:
        return (self.round - 1) % 2

    @property
    def _round_name(self) -> str:
        return f"round {self.round}" + (f" of {self.max_rounds}" if self._is_end_told else "")

    def phase(self) -> str:
        """Return ``"offer"`` or ``"answer"``."""
        return "offer" if self._offer is None else "answer"

    def asked(self) -> tuple[int, ...]:
        """Return the proposer, then the seat that answers."""
        if self._is_over:
            return ()
        return (self._proposer,) if self._offer is None else (1 - self._proposer,)

    def prompt(self, seat: int) -> str:
        """Return the round, and the offer to be answered."""
        return f"R{self._round_name[1:]}. {self._question()}"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the answers, or every offer if there are at most a thousand steps."""
        if self._offer is not None:
            return tuple(dict.fromkeys(self.answers.values()))
        if self.most // self.step >= LIST_LIMIT:
            return ()
        return tuple([f"{self.offer_verb} {amount}" for amount in range(0, self.most + 1, self.step)])

    def read(self, seat: int, text: str) -> str:
        """Return an offer or an answer, with ``" | message"`` where there may be one."""
        if self._offer is not None:
            return read_decision(text, self.answers, self.options.messages_allowed)
        return self._read_offer(seat, text)

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take an offer or an answer."""
        ((seat, action),) = actions.items()
        bare, speech = split_speech(action)
        is_offer = self._offer is None
        if self._offer is None:
            self._offer = int(bare.rpartition(" ")[2])
        self.tell(self.everyone, self._offer_line(self._offer) if is_offer else f"{self.seats[seat]} {bare}s.")
        if speech:
            self.tell(self.everyone, quoted(self.seats[seat], speech))
        if is_offer:
            return 0.0, 0.0
        self._is_over = bare != "reject" or self.round == self.max_rounds
        if bare == "accept":
            gains = self._agree()
            self._earn(gains)
            return gains
        self._offer = None
        if self._is_over:
            self.tell(self.everyone, "No agreement: both get nothing.")
        else:
            self.round += 1
        return 0.0, 0.0

    def progress(self, seat: int) -> float:
        """Return the share of the rounds gone by; where the last one is not told, ``1 - 1 / round``."""
        if self._is_over:
            return 1.0
        gone = self.round - (1 if self._offer is None else 0.5)
        return gone / self.max_rounds if self._is_end_told else 1 - 1 / (1 + gone)

    def score(self, seat: int) -> float:
        """Return the seat's gain."""
        return self._earned[seat]

    def metrics(self) -> dict[str, float]:
        """Return each seat's gain, whether they agreed, and the round."""
        return {
            "self_gain_0": self._earned[0],
            "self_gain_1": self._earned[1],
            "agreement": float(self._agreed is not None),
            "round": float(self.round),
        }

    def state(self) -> JSONValue:
        """Return round, offer and result."""
        return {
            "round": self.round,
            "offer": self._offer,
            "agreed": self._agreed,
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore round, offer and result; what the seats gain from an agreement must be there already.

        Raises:
            ValueError: No game can be in this state.
        """
        round_number, offer, agreed, is_over = (state[name] for name in ("round", "offer", "agreed", "is_over"))
        if type(is_over) is not bool or type(round_number) is not int or not 1 <= round_number <= self.max_rounds:
            raise ValueError(f"round {round_number!r:.80} and is_over {is_over!r:.80}")
        amounts = [amount for amount in (offer, agreed) if amount is not None]
        if any(type(each) is not int or not 0 <= each <= self.most or each % self.step for each in amounts):
            raise ValueError(f"the offer {offer!r:.80} and the agreement {agreed!r:.80}")
        self.round, self._offer, self._agreed, self._is_over = round_number, offer, agreed, is_over
        if agreed is not None and (not is_over or offer is None or self._settled() != agreed):
            raise ValueError(f"the agreement {agreed} after the offer {offer!r}")
        self._load_earned(state["earned"])
        if not any(all(map(math.isclose, self._earned, each)) for each in self._possible_gains()):
            raise ValueError(f"the gains {self._earned}")

    def _possible_gains(self) -> list[Sequence[float]]:
        """Return what the seats can have earned by now: nothing, by the agreement, or by a forfeit."""
        if self._agreed is not None:
            return [self._gains()]
        if not self._is_over:
            return [(0.0, 0.0)]
        found: list[Sequence[float]] = []
        if self.forfeited:
            lost = ((0,), (1,), self.everyone)
            found = [[self._walkover(seat, seat not in each) for seat in self.everyone] for each in lost]
        can_end = self.round == self.max_rounds or "leave" in self.answers.values()
        return [*found, (0.0, 0.0)] if can_end and self._offer is None else found

    @abstractmethod
    def _question(self) -> str:
        """Return the question to the proposer, or to the seat that answers."""

    @abstractmethod
    def _read_offer(self, seat: int, text: str) -> str:
        """Return the canonical offer, which ends with its number, and the message."""

    @abstractmethod
    def _offer_line(self, offer: int) -> str:
        """Return what both seats read of an offer."""

    @abstractmethod
    def _agree(self) -> tuple[float, float]:
        """Record the agreement, tell what it is worth, and return both gains."""

    @abstractmethod
    def _settled(self) -> int:
        """Return what is agreed if the offer is accepted."""

    @abstractmethod
    def _gains(self) -> tuple[float, float]:
        """Return what the agreement brings the seats."""
