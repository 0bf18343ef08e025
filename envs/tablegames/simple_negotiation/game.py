"""Simple negotiation: two seats trade goods that are not worth the same to both.

The rules are those of SPIRAL's game (arXiv 2506.24119) and of TextArena's, with three differences: a turn has one
action, an offer lapses unless it is accepted immediately, and no seat sees the other's goods or values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.speech import quoted
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import split_speech, with_speech
from turngym.envs.tablegames.simple_negotiation.reading import read_turn
from turngym.envs.tablegames.simple_negotiation.rules import (
    BASE_VALUES,
    FEWEST,
    MOST,
    TWO_GOODS,
    Offer,
    best_joint_gain,
    counted,
    covers,
    drawn_values,
    offer_text,
    parsed_offer,
    small_offers,
    worth,
)
from turngym.envs.tablegames.two_seats import TwoSeats, signs
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

_SMALL = 3
_MOST_WANTED = 10**6
"""More of a good than an answer can name."""


class SimpleNegotiation(TwoSeats):
    """Trade goods by offers; the seat with the larger gain in value wins.

    The score of a seat is its gain relative to the value of its initial goods, so refusing every trade is safe but is
    not a success. ``legal_actions`` lists offers of one good for another of up to three each; all others are legal too.

    >>> game = SimpleNegotiation()
    >>> game.begin(np.random.default_rng(0), {"quantities": [[10, 10], [10, 10]]})
    >>> _ = game.commit({0: game.read(0, "Let us trade! [Offer: 4 Wood -> 3 Gold]")})
    >>> _ = game.commit({1: game.read(1, "[accept]")})
    >>> game.anchor(0)
    'you have 6 wood (worth 5 each), 13 gold (worth 15 each); no offer'
    """

    class Options(TwoSeats.Options):
        goods: Literal["two", "five"] = "two"
        """``two`` for wood and gold with SPIRAL's values, ``five`` for TextArena's goods with random values."""
        turns: Annotated[int, between(1, 200)] = 10
        """Turns of both seats together."""
        talk: bool = True
        """Whether the other seat reads what a seat writes besides its action."""
        reward: Literal["win", "gain"] = "win"
        """``win`` pays +1 and -1 at the end, 0 for a draw; ``gain`` pays the score."""

    options: Options

    file_options = worded()
    score_range = (-1.0, MOST / FEWEST)  # from giving away everything to getting everything

    name = "simple_negotiation"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically first", "winners' most frequent action"),
        "half of a random opponent's offers are gifts, so accepting all of them wins as often as it loses, while "
        "random play seldom trades and ends in a draw; opponents=trader makes no gifts.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "trader": "turngym.envs.tablegames.simple_negotiation.players:TraderPlayer",
        "refuser": "turngym.envs.tablegames.simple_negotiation.players:RefuserPlayer",
    }

    def setup(self) -> None:
        """Prepare an empty course."""
        options = self.options
        self.goods = tuple(TWO_GOODS if options.goods == "two" else BASE_VALUES)
        self.turns, self.talk, self.reward = options.turns, options.talk, options.reward
        self.values: tuple[tuple[int, ...], ...] = ()
        """Value of one unit of each good for each seat."""
        self.first: tuple[tuple[int, ...], ...] = ()
        """How many of each good each seat had at first."""
        self._traded = [0] * len(self.goods)
        self._shown: list[list[int]] = []
        self._offer: Offer | None = None
        self._turn = self._trades = 0

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        one, other = self.goods[0], self.goods[1]
        talk = " What you write beside the action is read by the other player." if self.talk else ""
        return (
            f"Two players have {', '.join(self.goods)}. What a good is worth differs between the players, and nobody "
            "knows what the other has or how much it is worth to them. Trade so that the worth of your goods grows "
            "more than that of the other player's goods: that wins. The players take turns, "
            f"{self.turns} turns in total. In your turn you make an offer, accept or deny the offer that the other has "
            "just made, or pass. An offer that is not accepted at once lapses.\n"
            f"Answer with one of [Offer: 2 {one} -> 1 {other}] (what you give -> what you want), [Accept], [Deny], "
            f"[Pass].{talk}"
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw goods and values; ``{"quantities": [[...], [...]], "values": [[...], [...]]}`` sets either."""
        self._restart(options, ("quantities", "values"))
        count = len(self.goods)
        quantities: Any = generator.integers(FEWEST, MOST + 1, size=(2, count)).tolist()
        values: Any = (
            [drawn_values(generator) for _ in self.seats] if count == 5 else list(zip(*TWO_GOODS.values(), strict=True))
        )
        self.first = self._table(options.get("quantities", quantities), "quantities", FEWEST, MOST)
        self.values = self._table(options.get("values", values), "values", 1, 1000)
        self._traded, self._shown = [0] * count, [[FEWEST] * count for _ in self.seats]
        self._offer, self._turn, self._trades = None, 0, 0
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}. You have {self._owned(seat)}.")

    def _table(self, given: Any, option: str, low: int, high: int) -> tuple[tuple[int, ...], ...]:
        """Return two rows of whole numbers, one for each good, or raise."""
        rows = [row for row in given if isinstance(row, list | tuple)] if isinstance(given, list | tuple) else []
        if len(rows) != 2 or any(len(row) != len(self.goods) for row in rows):
            raise ConfigError(f"{option} of {self.name} are two lists of {len(self.goods)} numbers, got {given!r}.")
        for number in (*rows[0], *rows[1]):
            if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
                raise ConfigError(f"{option} of {self.name} must be whole numbers in [{low}, {high}], got {number!r}.")
        return tuple(rows[0]), tuple(rows[1])

    def _has(self, seat: int) -> tuple[int, ...]:
        """Return a seat's goods now; what is traded is counted as seat 0 gets it."""
        sign = 1 - 2 * seat
        return tuple([first + sign * more for first, more in zip(self.first[seat], self._traded, strict=True)])

    def _owned(self, seat: int) -> str:
        parts = zip(self._has(seat), self.goods, self.values[seat], strict=True)
        return ", ".join([f"{count} {good} (worth {value} each)" for count, good, value in parts])

    def asked(self) -> tuple[int, ...]:
        """Return the seat whose turn it is."""
        return () if self._is_over else (self._turn % 2,)

    def prompt(self, seat: int) -> str:
        """Return the seat's goods and the offer that it may accept."""
        left = f"Turn {self._turn + 1} of {self.turns}. You have {self._owned(seat)}."
        if self._offer is None:
            return f"{left} There is no offer. What do you do?"
        gets, gives = counted(self._offer.gives, self.goods), counted(self._offer.wants, self.goods)
        return f"{left} You are offered {gets} for your {gives}. What do you do?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the answers to an offer, else pass; then the small offers of one good for another."""
        answers = ["pass"] if self._offer is None else ["deny"]
        if self._offer is not None and covers(self._has(seat), self._offer.wants):
            answers.insert(0, "accept")
        return (*answers, *small_offers(self.goods, tuple([min(_SMALL, count) for count in self._has(seat)])))

    def read(self, seat: int, text: str) -> str:
        """Return ``"accept"``, ``"deny"``, ``"pass"`` or ``"offer ..."``, with ``" | speech"`` if there is any."""
        action, speech = read_turn(text, self.goods, self.talk)
        if isinstance(action, Offer):
            if not covers(self._has(seat), action.gives):
                raise InvalidAction(f"You do not have {counted(action.gives, self.goods)}.")
            action = offer_text(action, self.goods)
        elif action != "pass" and self._offer is None:
            raise InvalidAction(f"There is no offer to {action}.")
        elif action == "accept" and self._offer is not None and not covers(self._has(seat), self._offer.wants):
            raise InvalidAction(f"You do not have {counted(self._offer.wants, self.goods)}: you cannot accept.")
        elif action == "pass" and self._offer is not None:
            action = "deny"
        return with_speech(action, speech) if self.talk else action

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a turn."""
        ((seat, action),) = actions.items()
        bare, speech = split_speech(action)
        name = self.seats[seat]
        if speech:
            self.tell(self.everyone, quoted(name, speech))
        if bare == "accept":
            self._trade(seat)
            self.tell(self.everyone, f"{name} accepts the offer.")
        elif self._offer is not None:
            self.tell(self.everyone, f"{name} denies the offer.")
        self._offer = parsed_offer(bare, self.goods)
        if self._offer is not None:
            self._note_shown(seat, self._offer.gives)
            given, wanted = counted(self._offer.gives, self.goods), counted(self._offer.wants, self.goods)
            self.tell(self.everyone, f"{name} offers {given} for {wanted}.")
        elif bare == "pass":
            self.tell(self.everyone, f"{name} makes no offer.")
        self._turn += 1
        return self._end() if self._turn == self.turns else (0.0, 0.0)

    def _note_shown(self, seat: int, counts: Sequence[int]) -> None:
        """Remember how many of each good everybody now knows that a seat had at first, at least."""
        sign = 1 - 2 * seat
        needed = [count - sign * more if count else 0 for count, more in zip(counts, self._traded, strict=True)]
        self._shown[seat] = [max(old, new) for old, new in zip(self._shown[seat], needed, strict=True)]

    def _trade(self, seat: int) -> None:
        """Exchange what the other seat has offered to this one."""
        assert self._offer is not None
        self._note_shown(seat, self._offer.wants)
        sign = 1 if seat == 0 else -1
        changes = [sign * (give - want) for give, want in zip(self._offer.gives, self._offer.wants, strict=True)]
        self._traded = [old + new for old, new in zip(self._traded, changes, strict=True)]
        self._trades += 1

    def _gain(self, seat: int) -> int:
        return (1 - 2 * seat) * worth(self._traded, self.values[seat])

    def _end(self) -> tuple[float, float]:
        self._is_over = True
        gains = self._gain(0), self._gain(1)
        self._earn(gains)
        for seat in self.everyone:
            result = {0: "a draw", 1: "you win", -1: "you lose"}[int(signs(*gains)[seat])]
            self.tell((seat,), f"Your goods gained {gains[seat]} in worth: {result}.")
        return signs(*gains) if self.reward == "win" else (self.score(0), self.score(1))

    def _walkover(self, seat: int, is_winner: bool) -> float:
        if self.reward == "gain":
            return self.score(seat)
        return 1.0 if is_winner else -1.0

    def anchor(self, seat: int) -> str:
        """Return the seat's goods, what they are worth to it, and the offer."""
        if self._offer is None:
            return f"you have {self._owned(seat)}; no offer"
        # The offer stands for the seat whose turn it is; the other one made it.
        whose = "offered to you" if self._turn % 2 == seat else "offered by you"
        return f"you have {self._owned(seat)}; {whose}: {offer_text(self._offer, self.goods)[6:]}"

    def progress(self, seat: int) -> float:
        """Return the share of the turns taken."""
        return self._turn / self.turns

    def score(self, seat: int) -> float:
        """Return the gain relative to the worth of the seat's first goods; -1, the loss of all, after a forfeit."""
        if seat in self.forfeited:
            return -1.0
        return self._gain(seat) / worth(self.first[seat], self.values[seat])

    def metrics(self) -> dict[str, float]:
        """Return each seat's gain, the share of the largest possible joint gain that was reached, and the trades."""
        best = best_joint_gain(self.first, self.values)
        joint = self._gain(0) + self._gain(1)
        return {
            "gain_0": float(self._gain(0)),
            "gain_1": float(self._gain(1)),
            "efficiency": joint / best if best else 1.0,
            "trades": float(self._trades),
        }

    def state(self) -> JSONValue:
        """Return goods, values, trades and the offer."""
        return {
            "first": [list(row) for row in self.first],
            "values": [list(row) for row in self.values],
            "traded": list(self._traded),
            "shown": [list(row) for row in self._shown],
            "offer": None if self._offer is None else [list(self._offer.gives), list(self._offer.wants)],
            "turn": self._turn,
            "trades": self._trades,
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ConfigError: Goods or values are out of range.
            ValueError: No game can be in this state.
        """
        self.first = self._table(state["first"], "first", FEWEST, MOST)
        self.values = self._table(state["values"], "values", 1, 1000)
        self._shown = [list(row) for row in self._table(state["shown"], "shown", FEWEST, MOST)]
        self._traded, self._turn, self._trades = list(state["traded"]), state["turn"], state["trades"]
        self._is_over = state["is_over"]
        self._offer = None if state["offer"] is None else Offer(*(tuple(counts) for counts in state["offer"]))
        self._load_earned(state["earned"])
        self._require_possible()

    def _require_possible(self) -> None:
        """Raise ``ValueError`` unless a game can be in this state."""
        offered = () if self._offer is None else (*self._offer.gives, *self._offer.wants)
        if any(type(each) is not int for each in (self._turn, self._trades, *self._traded, *offered)):
            raise ValueError(f"turn {self._turn!r:.80}, traded {self._traded!r:.80} and the offer {self._offer!r:.80}")
        if not 0 <= self._trades <= self._turn // 2 or not self._turn <= self.turns or any(self._traded) > self._trades:
            raise ValueError(f"{self._trades} trades in {self._turn} turns")
        seats = [zip(self._has(seat), self._shown[seat], self.first[seat], strict=True) for seat in self.everyone]
        if any(has < 0 or shown > first for each in seats for has, shown, first in each):
            raise ValueError(f"traded {self._traded} and shown {self._shown}")
        if self._offer is not None and not (
            self._turn
            and 0 <= min(offered) <= max(offered) < _MOST_WANTED
            and covers(self._has(1 - self._turn % 2), self._offer.gives)
        ):
            raise ValueError(f"the offer {self._offer}")
        is_last = self._turn == self.turns or bool(self.forfeited)
        expected: Sequence[float] = (0.0, 0.0) if not self._is_over else (self._gain(0), self._gain(1))
        if self.forfeited:
            expected = tuple([self._walkover(seat, seat not in self.forfeited) for seat in self.everyone])
        if self._is_over is not is_last or list(expected) != self._earned:
            raise ValueError(f"is_over {self._is_over!r:.80} and earned {self._earned} after turn {self._turn}")

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Give the other seat other goods, as many at least as it has shown; and other values where they are drawn."""
        if self._is_over:
            return False
        other = 1 - seat
        goods = [int(generator.integers(fewest, MOST + 1)) for fewest in self._shown[other]]
        values = drawn_values(generator) if len(self.goods) == 5 else self.values[other]
        changed = tuple(goods) != self.first[other] or values != self.values[other]
        self.first = (self.first[0], tuple(goods)) if other else (tuple(goods), self.first[1])
        self.values = (self.values[0], values) if other else (values, self.values[1])
        return changed
