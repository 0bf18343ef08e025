"""Ultimatum and trust: one seat names a share, the other replies; the roles change after every round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.options import between
from turngym.types import JSONValue

ACCEPT, REJECT = "accept", "reject"
_PLACE = "turngym.envs.tablegames.shares"


class Shares(TwoSeats):
    """A round is a number of the first seat and a reply of the other; the next round begins with the other seat."""

    class Options(TwoSeats.Options):
        rounds: Annotated[int, between(1, 100)] = 10
        """Rounds of a game; the seats take turns to begin."""
        pool: Annotated[int, between(1, 100)] = 10
        """Points to divide in each round."""

    options: Options
    file_options = worded()

    def setup(self) -> None:
        """Prepare the first round."""
        self.history: list[list[str]] = []
        """First action and reply of every round that is over."""
        self._opened = ""
        self.score_range = (0.0, self.most)

    @property
    @abstractmethod
    def most(self) -> float:
        """Largest payoff of a round."""

    @abstractmethod
    def openings(self) -> tuple[str, ...]:
        """Return the actions of the seat that begins."""

    @abstractmethod
    def replies(self, opening: str) -> tuple[str, ...]:
        """Return the actions of the other seat."""

    @abstractmethod
    def paid(self, opening: str, reply: str) -> tuple[int, int]:
        """Return the payoffs of the seat that begins and of the other."""

    @abstractmethod
    def question(self, is_first: bool) -> str:
        """Return the question to one of both seats."""

    @property
    def first(self) -> int:
        """Seat that begins the round."""
        return len(self.history) % 2

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start the first round; there are no options."""
        self._restart(options)
        self.history, self._opened = [], ""
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}. {self.seats[0]} begins.")

    def asked(self) -> tuple[int, ...]:
        """Return the seat that begins the round, then the other."""
        return () if self._is_over else (1 - self.first if self._opened else self.first,)

    def prompt(self, seat: int) -> str:
        """Return the round and the question."""
        return f"Round {len(self.history) + 1} of {self.options.rounds}. {self.question(not self._opened)}"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the numbers, or the replies."""
        return self.replies(self._opened) if self._opened else self.openings()

    def read(self, seat: int, text: str) -> str:
        """Return the action that an answer names."""
        legal = self.legal_actions(seat)
        shown = " or ".join(legal) if len(legal) == 2 else f"a number from {legal[0]} to {legal[-1]}"
        try:
            return read_choice(text, _forms(legal))
        except InvalidAction as error:
            reason, kind = error.reason, error.kind
        with suppress(InvalidAction):
            reason, kind = f"{read_choice(text, _any_forms())} is not a legal action now.", "illegal"
        raise InvalidAction(f"{reason} Answer {shown}.", kind)

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take the number, or the reply and pay."""
        ((seat, action),) = actions.items()
        self.tell(self.everyone, f"{self.seats[seat]}: {action}.")
        if not self._opened:
            self._opened = action
            return 0.0, 0.0
        own, other = self.paid(self._opened, action)
        rewards = (float(own), float(other)) if self.first == 0 else (float(other), float(own))
        self.history.append([self._opened, action])
        self._opened = ""
        self.tell(self.everyone, f"Round {len(self.history)} pays {rewards[0]:g} and {rewards[1]:g}.")
        self._earn(rewards)
        self._is_over = len(self.history) == self.options.rounds
        return rewards

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return self.most * (self.options.rounds - len(self.history)) if is_winner else 0.0

    def anchor(self, seat: int) -> str:
        """Return all rounds, and the number of this one."""
        rounds = [" ".join(each) for each in self.history]
        return f"you are {self.seats[seat]}: {'; '.join([*rounds, self._opened])}"

    def progress(self, seat: int) -> float:
        """Return the share of the decisions that are over."""
        return 1.0 if self._is_over else (2 * len(self.history) + bool(self._opened)) / (2 * self.options.rounds)

    def score(self, seat: int) -> float:
        """Return the mean payoff of the rounds that are over; after a forfeit, of all rounds."""
        return self._earned[seat] / (self.options.rounds if self.forfeited else max(1, len(self.history)))

    def state(self) -> JSONValue:
        """Return the rounds, the number of this one, and the sums."""
        return {
            "history": [list(each) for each in self.history],
            "opened": self._opened,
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        openings = self.openings()
        for opening, reply in state["history"]:
            if opening not in openings or reply not in self.replies(opening):
                raise ValueError(f"the round {opening!r}, {reply!r}")
        if state["opened"] not in ("", *openings):
            raise ValueError(f"the number {state['opened']!r}")
        self.history, self._opened = [list(each) for each in state["history"]], state["opened"]
        self._is_over = state["is_over"]
        self._load_earned(state["earned"])


class Ultimatum(Shares):
    """One seat offers a part of the pool; if the other rejects it, both get nothing.

    Accepting every offer above 0 and offering 1 is an equilibrium, as is offering 0 and accepting everything.

    The rewards are the payoffs of each round, the score is their mean, and the seat with the larger sum at the end
    succeeds; with equal sums nobody does.

    >>> Ultimatum().paid("3", "accept"), Ultimatum().paid("3", "reject")
    ((7, 3), (0, 0))
    """

    name = "ultimatum"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "last winner's first action", "winners' most frequent action"),
        "accepting every offer earns more than rejecting some at random.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "fair": f"{_PLACE}:FairPlayer",
        "equilibrium": f"{_PLACE}:SelfishPlayer",
    }

    @property
    def most(self) -> float:
        """The whole pool."""
        return float(self.options.pool)

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        pool = self.options.pool
        return (
            f"Two players, {_in_rounds(self.options.rounds)} one of them has {pool} points and offers the other a part "
            "of them. If the other accepts, both keep what the offer gives them; if it rejects, both get nothing."
            f"{_change(self.options.rounds)}\n"
            f"Answer with a number from 0 to {pool} in brackets to offer, and with [accept] or [reject] to reply."
        )

    def question(self, is_first: bool) -> str:
        """Return the question to one of both seats."""
        return f"How many of {self.options.pool} points do you offer?" if is_first else "Do you accept or reject?"

    def openings(self) -> tuple[str, ...]:
        """Return the offers."""
        return tuple(map(str, range(self.options.pool + 1)))

    def replies(self, opening: str) -> tuple[str, ...]:
        """Return accept and reject."""
        return ACCEPT, REJECT

    def paid(self, opening: str, reply: str) -> tuple[int, int]:
        """Return the payoffs of the seat that offers and of the other."""
        return (self.options.pool - int(opening), int(opening)) if reply == ACCEPT else (0, 0)

    def metrics(self) -> dict[str, float]:
        """Return the mean offer, and the share of offers that were accepted."""
        count = max(1, len(self.history))
        return {
            "mean_offer": sum(int(opening) for opening, _ in self.history) / count,
            "accepted": sum(reply == ACCEPT for _, reply in self.history) / count,
        }


class Trust(Shares):
    """One seat sends points, which are tripled; the other returns some of them.

    Sending and returning nothing is the equilibrium; both together earn most if all points are sent.

    The rewards are the payoffs of each round, the score is their mean, and the seat with the larger sum at the end
    succeeds; with equal sums nobody does.

    >>> Trust().paid("10", "15"), Trust().paid("0", "0")
    ((15, 15), (10, 0))
    """

    name = "trust"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "last winner's first action", "winners' most frequent action"),
        "sending and returning nothing earns most in a round.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "fair": f"{_PLACE}:FairPlayer",
        "equilibrium": f"{_PLACE}:SelfishPlayer",
    }

    @property
    def most(self) -> float:
        """All points, tripled."""
        return 3.0 * self.options.pool

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        pool = self.options.pool
        return (
            f"Two players, {_in_rounds(self.options.rounds)} one of them has {pool} points and sends the other a part "
            "of them, which is tripled on the way. The other returns as much of it as it likes. Both keep what they "
            f"have then.{_change(self.options.rounds)}\n"
            "Answer with a number in brackets, such as [3]."
        )

    def question(self, is_first: bool) -> str:
        """Return the question to one of both seats."""
        if is_first:
            return f"How many of {self.options.pool} points do you send?"
        return f"You have got {3 * int(self._opened)} points. How many do you return?"

    def openings(self) -> tuple[str, ...]:
        """Return what can be sent."""
        return tuple(map(str, range(self.options.pool + 1)))

    def replies(self, opening: str) -> tuple[str, ...]:
        """Return what can be returned."""
        return tuple(map(str, range(3 * int(opening) + 1)))

    def paid(self, opening: str, reply: str) -> tuple[int, int]:
        """Return the payoffs of the seat that sends and of the other."""
        sent, returned = int(opening), int(reply)
        return self.options.pool - sent + returned, 3 * sent - returned

    def metrics(self) -> dict[str, float]:
        """Return the mean number that was sent, and the share of tripled points that was returned."""
        sent = sum(int(opening) for opening, _ in self.history)
        returned = sum(int(reply) for _, reply in self.history)
        return {"mean_sent": sent / max(1, len(self.history)), "returned": returned / max(1, 3 * sent)}


def _forms(actions: Sequence[str]) -> dict[str, str]:
    """Return simplified text -> action."""
    verbs = ("offer", "send", "return", "i offer", "i send", "i return", "i")
    return {form: each for each in actions for form in (each, *[f"{verb} {each}" for verb in verbs])}


@cache
def _any_forms() -> dict[str, str]:
    """Return the forms of what may be an action at another time or of another game."""
    return _forms((ACCEPT, REJECT, *map(str, range(1000))))


def _in_rounds(count: int) -> str:
    return "one round:" if count == 1 else f"{count} rounds. In each,"


def _change(rounds: int) -> str:
    return "" if rounds == 1 else " Then they change roles."


class FairPlayer(Player):
    """Offers half and rejects less than a fifth; sends everything and returns half."""

    name = "fair"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return an action."""
        legal = view.legal_actions
        if ACCEPT in legal:
            offered, pool = int(view.anchor.rpartition(" ")[2]), _pool(view)
            return ACCEPT if 5 * offered >= pool else REJECT
        highest = max(map(int, legal))
        is_trust = "tripled" in view.instructions
        return str(highest if is_trust and "do you send" in view.observation else highest // 2)


class SelfishPlayer(Player):
    """Offers as little as a selfish player accepts, and accepts all above 0; sends and returns nothing."""

    name = "equilibrium"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return an action."""
        if ACCEPT in view.legal_actions:
            return ACCEPT if int(view.anchor.rpartition(" ")[2]) else REJECT
        return "1" if "offer" in view.observation.rpartition(". ")[2] else "0"


def _pool(view: SeatView) -> int:
    words = view.instructions.partition(" points and ")[0]
    return int(words.rpartition(" ")[2])
