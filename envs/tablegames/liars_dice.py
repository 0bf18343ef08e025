"""Liar's dice for two: bids about all dice, of which each seat sees its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

LIAR = "liar"
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def bids(dice: int, faces: int) -> tuple[str, ...]:
    """Return all bids, the lowest first: by quantity, then by face.

    Args:
        dice: Number of all dice.
        faces: Faces of a die.

    >>> bids(2, 2)
    ('1x1', '1x2', '2x1', '2x2')
    """
    return tuple([f"{quantity}x{face}" for quantity in range(1, dice + 1) for face in range(1, faces + 1)])


def parts(bid: str) -> tuple[int, int]:
    """Return quantity and face of a bid."""
    quantity, _, face = bid.partition("x")
    return int(quantity), int(face)


def count(face: int, dice: Sequence[int], wild: int) -> int:
    """Return the number of dice that count for a face: those that show it or the wild face (0 for none)."""
    return len([die for die in dice if die in (face, wild)])


def _forms(bid: str) -> Iterator[str]:
    quantity, face = parts(bid)
    for many in (str(quantity), _NUMBERS[quantity - 1]):
        for between_them in ("x", " x ", "×", " ", " times ", ", "):
            yield f"{many}{between_them}{face}"
        yield from (f"{many} {face}s", f"{many} {face}'s", f"{many} {_NUMBERS[face - 1]}s")


_MEANINGS = {
    **{form: bid for bid in bids(10, 6) for short in _forms(bid) for form in (short, f"bid {short}", f"bid: {short}")},
    **dict.fromkeys((LIAR, "call", "liar!", "i call liar", "call liar", "challenge", "doubt"), LIAR),
}


class LiarsDice(TwoSeats):
    """One round of liar's dice: +1 for the winner, -1 for the loser.

    Each seat rolls its dice in secret. A bid such as ``2x5`` claims that at least two dice of both seats show a five;
    the highest face counts for every face if it is wild. The next seat bids more (a larger quantity, or the same with a
    higher face) or says ``liar``: then the dice are shown, and the bidder wins if the bid is true. With one die each,
    the value for ``player_0`` is 1/9 for three faces and about -0.0276 for six. The anchor is the information set.

    >>> game = LiarsDice()
    >>> game.begin(np.random.default_rng(0), {"dice": [[1], [6]]})
    >>> game.commit({0: game.read(0, "I bid [two ones]")}), game.commit({1: "liar"})
    ((0.0, 0.0), (1.0, -1.0))
    """

    class Options(TwoSeats.Options):
        dice: Annotated[int, between(1, 5)] = 1
        """Dice of each seat."""
        faces: Annotated[int, between(2, 6)] = 6
        """Faces of a die."""
        wild: bool = True
        """Whether the highest face counts for every face."""

    options: Options

    file_options = worded()
    score_range = (-1.0, 1.0)

    name = "liars_dice"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically last", "winners' most frequent action"),
        "a random opponent bids far more than there is, so saying liar wins; opponents=truthful does not.",
    )
    players: ClassVar[Mapping[str, str]] = {"truthful": "turngym.envs.tablegames.liars_dice:TruthfulPlayer"}

    def setup(self) -> None:
        """Prepare an empty round."""
        chosen = self.options
        self.bids = bids(2 * chosen.dice, chosen.faces)
        self.wild = chosen.faces if chosen.wild else 0
        self._dice: list[list[int]] = [[1] * chosen.dice] * 2
        self._made: list[str] = []

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        chosen = self.options
        many = "one die" if chosen.dice == 1 else f"{chosen.dice} dice"
        wild = f" A {chosen.faces} counts for every face." if chosen.wild else ""
        return (
            f"Liar's dice for two. Each player rolls {many} with the faces 1 to {chosen.faces}, which only they see. "
            f"{self.seats[0]} begins. A bid QxF claims that at least Q of all {2 * chosen.dice} dice show F.{wild} "
            "Each bid must be higher than the last: a larger quantity, or the same quantity and a higher face. Instead "
            "of bidding, call the other player a liar: the dice are shown, and the last bidder wins if the bid is "
            "true, else the other.\n"
            "Answer with a bid such as 2x3 (two threes), or with: liar."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Roll; ``{"dice": [[1], [6]]}`` gives ``player_0`` and ``player_1`` these dice."""
        self._restart(options, ("dice",))
        rolled = [self._rolled(generator) for _ in self.everyone]
        given = options.get("dice", rolled)
        if not self._are_dice(given):
            raise ConfigError(
                f"dice must be two lists of {self.options.dice} numbers from 1 to {self.options.faces}, got {given!r}."
            )
        self._dice, self._made = [sorted(each) for each in given], []
        for seat in self.everyone:
            self.tell((seat,), f"{self._shown(seat, 'You roll')}. {self.seats[0]} begins.")

    def _rolled(self, generator: np.random.Generator) -> list[int]:
        return sorted([int(die) for die in generator.integers(1, self.options.faces + 1, size=self.options.dice)])

    def _are_dice(self, given: Any) -> bool:
        known, size = range(1, self.options.faces + 1), self.options.dice
        return (
            isinstance(given, list | tuple)
            and len(given) == 2
            and all(isinstance(each, list | tuple) and len(each) == size for each in given)
            and all(type(die) is int and die in known for each in given for die in each)
        )

    def _shown(self, seat: int, verb: str) -> str:
        return f"{verb} {' '.join(map(str, self._dice[seat]))}"

    def asked(self) -> tuple[int, ...]:
        """Return the seat that bids or doubts."""
        return () if self._is_over else (len(self._made) % 2,)

    def prompt(self, seat: int) -> str:
        """Return the seat's dice, the last bid, and the choice."""
        last = f"The last bid is {self._made[-1]}. Do you bid more or say liar?" if self._made else "What do you bid?"
        return f"{self._shown(seat, 'Your dice:')}. {last}"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the higher bids, and after the first bid ``liar``."""
        if not self._made:
            return self.bids
        return (*self.bids[self.bids.index(self._made[-1]) + 1 :], LIAR)

    def read(self, seat: int, text: str) -> str:
        """Return the bid that an answer names, or ``liar``."""
        action = read_choice(text, _MEANINGS)
        if action in self.legal_actions(seat):
            return action
        if action == LIAR:
            raise InvalidAction("There is no bid yet: answer with a bid, such as 1x2.")
        if action not in self.bids:
            raise InvalidAction(f"There is no bid {action} here: the highest is {self.bids[-1]}.")
        raise InvalidAction(f"{action} is not higher than {self._made[-1]}: bid more or answer liar.")

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a bid, or show the dice and pay."""
        ((seat, action),) = actions.items()
        if action != LIAR:
            self._made.append(action)
            self.tell(self.everyone, f"{self.seats[seat]} bids {action}.")
            return 0.0, 0.0
        self._is_over = True
        self.tell(self.everyone, f"{self.seats[seat]} says liar.")
        self.tell(
            self.everyone, "; ".join([self._shown(one, f"{self.seats[one]} shows") for one in self.everyone]) + "."
        )
        quantity, face = parts(self._made[-1])
        found = count(face, [*self._dice[0], *self._dice[1]], self.wild)
        winner = 1 - seat if found >= quantity else seat
        self.tell(self.everyone, f"{found} for the bid {self._made[-1]}: {self.seats[winner]} wins.")
        rewards = (1.0, -1.0) if winner == 0 else (-1.0, 1.0)
        self._earn(rewards)
        return rewards

    def _walkover(self, seat: int, is_winner: bool) -> float:
        return 1.0 if is_winner else -1.0

    def anchor(self, seat: int) -> str:
        """Return the seat's information set, such as ``2 5: 1x3 2x3``."""
        if self._is_over:
            return f"over; {self._earned[seat]:+.0f}"
        return " ".join([f"{self._shown(seat, '').strip()}:", *self._made])

    def progress(self, seat: int) -> float:
        """Return the share of the bids that can no longer be made."""
        if self._is_over:
            return 1.0
        return (self.bids.index(self._made[-1]) + 1) / (len(self.bids) + 1) if self._made else 0.0

    def score(self, seat: int) -> float:
        """Return 1 for a win, -1 for a loss, 0 before the end."""
        return self._earned[seat]

    def metrics(self) -> dict[str, float]:
        """Return the number of bids, and whether the last one was true (0 also where it was not doubted)."""
        is_true = bool(self._is_over and not self.forfeited and self._earned[(len(self._made) + 1) % 2] > 0)
        return {"bids": float(len(self._made)), "last_bid_true": float(is_true)}

    def state(self) -> JSONValue:
        """Return dice, bids and result."""
        return {
            "dice": [list(each) for each in self._dice],
            "bids": list(self._made),
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        if not self._are_dice(state["dice"]) or not set(state["bids"]) <= set(self.bids):
            raise ValueError(f"the dice {state['dice']!r} and the bids {state['bids']!r}")
        self._dice, self._made = [list(each) for each in state["dice"]], list(state["bids"])
        self._load_earned(state["earned"])
        self._is_over = state["is_over"]

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Roll the other seat's dice again."""
        if self._is_over:
            return False
        before, self._dice[1 - seat] = self._dice[1 - seat], self._rolled(generator)
        return self._dice[1 - seat] != before


class TruthfulPlayer(Player):
    """Makes the lowest bid that its dice prove; else doubts an unlikely bid, or makes the likeliest one."""

    name = "truthful"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember: the anchor shows dice and bids, the rules show the wild face."""
        self._is_wild = "counts for every face" in view.instructions
        faces = view.instructions.partition("the faces 1 to ")[2]
        self._faces = int(faces[: faces.index(",")])

    def act(self, view: SeatView) -> str:
        """Return a bid or ``liar``."""
        own, _, made = view.anchor.partition(":")
        dice = [int(die) for die in own.split()]
        higher = sorted([action for action in view.legal_actions if action != LIAR], key=parts)
        chances = {bid: self._chance(bid, dice) for bid in higher}
        certain = [bid for bid in higher if chances[bid] == 1]
        if certain:
            return certain[0]
        if made and (not higher or self._chance(made.split()[-1], dice) < 0.5):
            return LIAR
        return max(higher, key=lambda bid: chances[bid])

    def _chance(self, bid: str, dice: Sequence[int]) -> float:
        """Return the probability of a bid, given the own dice."""
        quantity, face = parts(bid)
        missing = quantity - count(face, dice, self._faces if self._is_wild else 0)
        if missing <= 0:
            return 1.0
        share = (2 if self._is_wild and face != self._faces else 1) / self._faces
        unseen = len(dice)
        return float_sum(
            math.comb(unseen, hits) * share**hits * (1 - share) ** (unseen - hits)
            for hits in range(missing, unseen + 1)
        )
