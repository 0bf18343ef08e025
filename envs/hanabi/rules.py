"""The rules of Hanabi as a state without text: cards, hints, fireworks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

COLOURS = ("red", "yellow", "green", "white", "blue")


class Card(NamedTuple):
    """A card.

    Args:
        colour: Index in :data:`COLOURS`.
        rank: From 1.
    """

    colour: int
    rank: int


class Held(NamedTuple):
    """A card in a hand, with what hints have said about it.

    Args:
        card: The card.
        colours: Colours that it can have by the hints.
        ranks: Ranks that it can have by the hints.
    """

    card: Card
    colours: tuple[int, ...]
    ranks: tuple[int, ...]

    def allows(self, card: Card) -> bool:
        """Return whether the hints allow another card in its place."""
        return card.colour in self.colours and card.rank in self.ranks

    def hinted(self, *, colour: int | None = None, rank: int | None = None) -> Held:
        """Return the card after a hint about its hand.

        >>> Held(Card(0, 1), (0, 1), (1, 2)).hinted(rank=2)
        Held(card=Card(colour=0, rank=1), colours=(0, 1), ranks=(1,))
        """
        colours, ranks = self.colours, self.ranks
        if colour is not None:
            colours = tuple([each for each in colours if (each == colour) == (self.card.colour == colour)])
        if rank is not None:
            ranks = tuple([each for each in ranks if (each == rank) == (self.card.rank == rank)])
        return Held(self.card, colours, ranks)


def copies(rank: int, ranks: int) -> int:
    """Return how many cards of a rank each colour has: three of the first, one of the last, two of the others.

    >>> [copies(rank, 5) for rank in range(1, 6)]
    [3, 2, 2, 2, 1]
    """
    return 3 if rank == 1 else 1 if rank == ranks else 2


def all_cards(colours: int, ranks: int) -> list[Card]:
    """Return all cards of a game, in order.

    >>> len(all_cards(5, 5)), len(all_cards(2, 3))
    (50, 12)
    """
    return [
        Card(colour, rank)
        for colour in range(colours)
        for rank in range(1, ranks + 1)
        for _ in range(copies(rank, ranks))
    ]


@dataclass
class Round:
    """State of a game.

    Args:
        colours: Number of colours.
        ranks: Cards of a complete firework.
        hints: Hints that are left.
        most_hints: Largest number of them.
        lives: Lives that are left.
        deck: Cards to draw; the last one is drawn next.
        hands: The hands; the oldest card is the first.
    """

    colours: int
    ranks: int
    hints: int
    most_hints: int
    lives: int
    deck: list[Card]
    hands: list[list[Held]]
    fireworks: list[int] = field(init=False)
    """Highest rank of each firework."""
    discarded: list[Card] = field(default_factory=list)
    """Cards that are out of the game, in the order of their discards and failures."""
    turn: int = 0
    """Seat that acts."""
    turns_left: int = -1
    """Turns until the end once the deck is empty; -1 before."""

    def __post_init__(self) -> None:
        self.fireworks = [0] * self.colours

    @property
    def points(self) -> int:
        """Cards in fireworks."""
        return sum(self.fireworks)

    @property
    def is_over(self) -> bool:
        """True if all fireworks are complete, all lives are lost, or everybody has had a turn without a deck."""
        return not self.lives or not self.turns_left or self.points == self.colours * self.ranks

    def is_playable(self, card: Card) -> bool:
        """Return whether a card is the next one of its firework."""
        return self.fireworks[card.colour] == card.rank - 1

    def play(self, place: int) -> tuple[Card, bool]:
        """Play a card of the seat that acts; returns it, and whether it fitted."""
        card = self._taken(place)
        fits = self.is_playable(card)
        if fits:
            self.fireworks[card.colour] += 1
            if card.rank == self.ranks:
                self.hints = min(self.hints + 1, self.most_hints)
        else:
            self.lives -= 1
            self.discarded.append(card)
        self._draw()
        return card, fits

    def discard(self, place: int) -> Card:
        """Discard a card of the seat that acts for a hint."""
        card = self._taken(place)
        self.discarded.append(card)
        self.hints += 1
        self._draw()
        return card

    def hint(self, seat: int, *, colour: int | None = None, rank: int | None = None) -> list[int]:
        """Hint at a colour or rank; returns the places of the cards that have it."""
        self.hints -= 1
        hand = self.hands[seat]
        self.hands[seat] = [held.hinted(colour=colour, rank=rank) for held in hand]
        self._pass_on(drew_last=False)
        return [place for place, held in enumerate(hand) if held.card.colour == colour or held.card.rank == rank]

    def fresh(self, card: Card) -> Held:
        """Return a card that has just been drawn."""
        return Held(card, tuple(range(self.colours)), tuple(range(1, self.ranks + 1)))

    def _taken(self, place: int) -> Card:
        return self.hands[self.turn].pop(place).card

    def _draw(self) -> None:
        draws = bool(self.deck)
        if draws:
            self.hands[self.turn].append(self.fresh(self.deck.pop()))
        self._pass_on(drew_last=draws and not self.deck)

    def _pass_on(self, drew_last: bool) -> None:
        if self.turns_left > 0:
            self.turns_left -= 1
        elif drew_last:
            self.turns_left = len(self.hands)
        self.turn = (self.turn + 1) % len(self.hands)


def is_useless(card: Card, fireworks: Sequence[int], discarded: Sequence[Card], ranks: int) -> bool:
    """Return whether a card can never be played: it is there already, or one below it is lost.

    >>> is_useless(Card(0, 3), [1], [Card(0, 2), Card(0, 2)], 5)
    True
    """
    gone = Counter(discarded)
    below = range(fireworks[card.colour] + 1, card.rank)
    return card.rank <= fireworks[card.colour] or any(
        gone[Card(card.colour, rank)] == copies(rank, ranks) for rank in below
    )


def unseen(colours: int, ranks: int, seen: Sequence[Card]) -> Counter[Card]:
    """Return how many cards of each kind are not among those seen."""
    return Counter(all_cards(colours, ranks)) - Counter(seen)


def possible(held_colours: Sequence[int], held_ranks: Sequence[int], left: Counter[Card]) -> Iterator[tuple[Card, int]]:
    """Yield the cards that a hinted card can be, with their numbers of copies."""
    for card, count in left.items():
        if card.colour in held_colours and card.rank in held_ranks:
            yield card, count
