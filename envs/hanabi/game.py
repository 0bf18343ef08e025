"""Hanabi as a game for a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.hanabi import text
from turngym.envs.hanabi.rules import COLOURS, Card, Held, Round, all_cards
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

_TRIES = 50


class Hanabi(Game):
    """Cooperative game of hints: every seat sees the cards of the others, and all score together.

    The reward is 1 for all seats for every card that fits. The score is the number of cards in fireworks; with
    ``strict`` it is 0 if all lives are lost, and what was earned is taken back. A game that ends with lives and at
    least ``target`` points is a success of all seats. A seat that forfeits loses the game for all. The anchor is
    everything that is on the table, in the hands of others, and known of the own hand.

    >>> game = Hanabi(colours=2, ranks=2, hand_size=1)
    >>> game.begin(np.random.default_rng(0), {"deck": ["red 1", "red 2", "yellow 1", "red 1"]})
    >>> game.commit({0: "hint player_1 2"}), game.commit({1: game.read(1, "[Discard 1]")})
    ([0.0, 0.0], [0.0, 0.0])
    >>> game.commit({0: "play 1"})
    [1.0, 1.0]
    """

    name = "hanabi"
    is_cooperative = True
    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = {
        "alphabetically first": "a seat that only discards never loses a life, and the other one scores alone."
    }
    players: ClassVar[Mapping[str, str]] = {
        "likely": "turngym.envs.hanabi.players:LikelyPlayer",
        "certain": "turngym.envs.hanabi.players:CertainPlayer",
    }

    class Options(BaseOptions):
        num_seats: Annotated[int, between(2, 5)] = 2
        """Number of seats."""
        colours: Annotated[int, between(1, 5)] = 5
        """Number of fireworks."""
        ranks: Annotated[int, between(2, 5)] = 5
        """Cards of a complete firework."""
        hand_size: Annotated[int, between(1, 5)] | None = None
        """Cards in a hand; None for 5 with two or three seats, else 4."""
        hints: Annotated[int, between(1, 8)] = 8
        """Hints at the beginning, which is also the largest number of them."""
        lives: Annotated[int, between(1, 3)] = 3
        """Cards that do not fit before the game is lost."""
        strict: bool = True
        """Whether the score is 0 if all lives are lost."""
        target: Annotated[int, between(1, 25)] | None = None
        """Points of a success; None for three fifths of all."""

        def check(self) -> None:
            cards, most = len(all_cards(self.colours, self.ranks)), self.colours * self.ranks
            if (self.target or 0) > most:
                raise OptionError("target", f"must be at most the {most} points that there are, got {self.target}.")
            if self.hand * self.num_seats >= cards:
                raise OptionError(
                    "hand_size",
                    f"must leave cards to draw: {self.num_seats} hands of {self.hand} need more than {cards} cards.",
                )

        @property
        def hand(self) -> int:
            """Cards in a hand."""
            return self.hand_size or (5 if self.num_seats < 4 else 4)

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(self.options.num_seats)
        chosen = self.options
        self.score_range = (0.0, float(chosen.colours * chosen.ranks))
        self.target = chosen.target or math.ceil(3 * self.score_range[1] / 5)
        """Points of a success."""
        self._size = len(all_cards(chosen.colours, chosen.ranks))
        self._meanings = text.meanings(chosen.num_seats, chosen.colours, chosen.ranks, chosen.hand)
        self._deal(all_cards(chosen.colours, chosen.ranks))

    _constructor = __init__

    def _deal(self, cards: Sequence[Card]) -> None:
        """Start with cards in the order in which they are dealt and drawn."""
        chosen = self.options
        deck = list(cards)[::-1]
        self.round = Round(chosen.colours, chosen.ranks, chosen.hints, chosen.hints, chosen.lives, deck, [])
        self.round.hands = [[self.round.fresh(deck.pop()) for _ in range(chosen.hand)] for _ in self.everyone]
        self._is_lost = False

    def instructions(self, seat: int) -> str:
        """Return the rules."""
        return text.instructions(self.options, self.options.hand, self.target)

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Shuffle and deal; ``{"deck": ["red 1", ...]}`` begins with these cards, ``player_0``'s hand first."""
        self.require_known(options, ["deck"])
        cards = all_cards(self.options.colours, self.options.ranks)
        order = [cards[place] for place in generator.permutation(len(cards)).tolist()]
        self.news.clear()
        self._deal(self._stacked(options["deck"], order) if "deck" in options else order)
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}. {self.seats[0]} begins.")
            others = [other for other in self.everyone if other != seat]
            for other in others:
                held = ", ".join([text.card_name(each.card) for each in self.round.hands[other]])
                self.tell((seat,), f"{self.seats[other]} holds {held}.")

    def _stacked(self, given: Any, order: Sequence[Card]) -> list[Card]:
        """Return given cards with the others of the game after them.

        Raises:
            ConfigError: They are not cards of the game.
        """
        left, found = list(order), []
        for name in given if isinstance(given, list | tuple) else [None]:
            card = next((each for each in left if text.card_name(each) == name), None)
            if card is None:
                raise ConfigError(f"deck must be a list of cards of the game, such as 'red 1', got {given!r:.80}.")
            left.remove(card)
            found.append(card)
        return [*found, *left]

    # Decisions.

    def asked(self) -> tuple[int, ...]:
        """Return the seat that acts."""
        return () if self._is_lost or self.round.is_over else (self.round.turn,)

    def prompt(self, seat: int) -> str:
        """Return the table as the seat sees it, and the question."""
        return f"{self.anchor(seat)}\nPlay, discard or hint?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return plays, discards unless there are all hints, and hints at cards that others hold."""
        held = range(1, len(self.round.hands[seat]) + 1)
        discards = [f"discard {place}" for place in held] if self.round.hints < self.round.most_hints else []
        return (*[f"play {place}" for place in held], *discards, *self._hints(seat))

    def _hints(self, seat: int) -> Iterator[str]:
        if not self.round.hints:
            return
        for other in self.everyone:
            if other == seat:
                continue
            cards = [held.card for held in self.round.hands[other]]
            yield from (f"hint {self.seats[other]} {COLOURS[each]}" for each in sorted({c.colour for c in cards}))
            yield from (f"hint {self.seats[other]} {each}" for each in sorted({c.rank for c in cards}))

    def read(self, seat: int, text: str) -> str:
        """Return the action that an answer names."""
        action = read_choice(text, self._meanings)
        if action in self.legal_actions(seat):
            return action
        verb, _, rest = action.partition(" ")
        if verb == "hint":
            name, _, about = rest.partition(" ")
            if not self.round.hints:
                raise InvalidAction("There is no hint left: play or discard a card.")
            if name == self.seats[seat]:
                raise InvalidAction("You cannot hint at your own cards.")
            raise InvalidAction(f"{name} has no card that is {about}: hint at one that it has.")
        if verb == "discard" and self.round.hints == self.round.most_hints:
            raise InvalidAction("You cannot discard while no hint has been used: play a card or give a hint.")
        raise InvalidAction(f"You have no card {rest}: name one of 1 to {len(self.round.hands[seat])}.")

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take an action; all seats earn the same."""
        ((seat, action),) = actions.items()
        before, deck = self.round.points, len(self.round.deck)
        verb, _, rest = action.partition(" ")
        if verb == "hint":
            self._hint(seat, *rest.split(" "))
        else:
            self._put_down(seat, verb, int(rest))
        if len(self.round.deck) < deck:
            drawn = text.card_name(self.round.hands[seat][-1].card)
            self.tell([other for other in self.everyone if other != seat], f"{self.seats[seat]} draws {drawn}.")
        gained = float(self.round.points - before)
        if not self.round.lives and self.options.strict:
            gained = float(-before)
        if self.round.is_over:
            self.tell(self.everyone, f"The game is over with {self.score(seat):g} of {self.score_range[1]:g} points.")
        return [gained] * self.num_seats

    def _hint(self, seat: int, name: str, about: str) -> None:
        other = self.seats.index(name)
        is_rank = about.isdecimal()
        kinds = {"rank": int(about)} if is_rank else {"colour": COLOURS.index(about)}
        places = self.round.hint(other, **kinds)
        shown = ", ".join([str(place + 1) for place in places])
        cards = f"card {shown} is" if len(places) == 1 else f"cards {shown} are"
        self.tell(self.everyone, f"{self.seats[seat]} hints {name}: {cards} {about}.")

    def _put_down(self, seat: int, verb: str, number: int) -> None:
        if verb == "discard":
            card = self.round.discard(number - 1)
            self.tell(self.everyone, f"{self.seats[seat]} discards card {number}: {text.card_name(card)}.")
            return
        card, fits = self.round.play(number - 1)
        how = "It fits" if fits else f"It does not fit: {self.round.lives} lives are left"
        self.tell(self.everyone, f"{self.seats[seat]} plays card {number}: {text.card_name(card)}. {how}.")

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game, lost by all."""
        for seat in seats:
            self.tell(self.everyone, f"{self.seats[seat]} gave no legal action: the game is lost.")
        self._is_lost = True
        return [float(-self.round.points) if self.options.strict else 0.0] * self.num_seats

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return table, hands of others, and what is known of the own hand."""
        return text.view(self.round, self.seats, seat)

    def progress(self, seat: int) -> float:
        """Return the share of the cards, and of the turns after the last one, that are gone."""
        if not self.asked():
            return 1.0
        gone = self._size - len(self.round.deck) - self.num_seats * self.options.hand
        after = self.num_seats - self.round.turns_left if self.round.turns_left >= 0 else 0
        return (gone + after) / (self._size - self.num_seats * self.options.hand + self.num_seats + 1)

    def winners(self) -> tuple[int, ...]:
        """Return all seats after a game that ended with lives and enough points."""
        is_won = self.round.is_over and self.round.lives and not self._is_lost and self.round.points >= self.target
        return self.everyone if is_won else ()

    def score(self, seat: int) -> float:
        """Return the number of cards in fireworks; with ``strict`` 0 for a lost game."""
        is_lost = self._is_lost or not self.round.lives
        return 0.0 if is_lost and self.options.strict else float(self.round.points)

    def metrics(self) -> dict[str, float]:
        """Return the points, lives and hints that are left."""
        return {
            "points": float(self.round.points),
            "lives": float(self.round.lives),
            "hints": float(self.round.hints),
        }

    def state(self) -> JSONValue:
        """Return cards, hints and counts."""
        now = self.round
        return {
            "deck": [list(card) for card in now.deck],
            "hands": [[[list(h.card), list(h.colours), list(h.ranks)] for h in hand] for hand in now.hands],
            "fireworks": list(now.fireworks),
            "discarded": [list(card) for card in now.discarded],
            "counts": [now.hints, now.lives, now.turn, now.turns_left],
            "is_lost": self._is_lost,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        now = self.round
        deck = [Card(*card) for card in state["deck"]]
        hands = [[Held(Card(*card), tuple(c), tuple(r)) for card, c, r in hand] for hand in state["hands"]]
        discarded = [Card(*card) for card in state["discarded"]]
        built = [Card(c, rank) for c, top in enumerate(state["fireworks"]) for rank in range(1, top + 1)]
        cards = sorted([*deck, *discarded, *built, *[held.card for hand in hands for held in hand]])
        if cards != all_cards(now.colours, now.ranks) or len(hands) != self.num_seats:
            raise ValueError("the cards are not those of the game")
        now.deck, now.hands, now.discarded = deck, hands, discarded
        now.fireworks = list(state["fireworks"])
        now.hints, now.lives, now.turn, now.turns_left = state["counts"]
        self._is_lost = state["is_lost"]

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Exchange the seat's hand and the deck for others that fit all hints."""
        if not self.asked():
            return False
        now, hand = self.round, self.round.hands[seat]
        pool = [*now.deck, *[held.card for held in hand]]
        for _ in range(_TRIES):
            left = [pool[place] for place in generator.permutation(len(pool)).tolist()]
            found = []
            for held in hand:
                card = next((each for each in left if held.allows(each)), None)
                if card is None:
                    break
                left.remove(card)
                found.append(Held(card, held.colours, held.ranks))
            else:
                has_changed = found != hand or left != now.deck
                now.hands[seat], now.deck = found, left
                return has_changed
        return False
