"""Players of Hanabi by convention: hint playable cards, play what is safe enough, discard the rest."""

from __future__ import annotations

import re
from collections import Counter
from typing import ClassVar, NamedTuple

import numpy as np

from turngym.envs.hanabi.rules import COLOURS, Card, is_useless, possible, unseen
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView

_FIREWORKS = re.compile(r"Fireworks: ([a-z0-9, ]+)\. Hints ([0-9]+) of ([0-9]+), lives ([0-9]+)")
_CARD = re.compile(r"card [0-9]+ (?:([a-z]+) ([0-9]) )?\(([a-z/]+) ([0-9a-z/]+)\)")
_PILE = re.compile(r"([a-z]{1,9}) ([0-9])(?: x([0-9]))?")
_RANKS = re.compile(r"cards from 1 to ([0-9]) in order")


class Shown(NamedTuple):
    """A card as a seat sees it.

    Args:
        card: The card; None in the own hand.
        colours: Colours that its owner knows to be possible.
        ranks: Ranks that its owner knows to be possible.
    """

    card: Card | None
    colours: tuple[int, ...]
    ranks: tuple[int, ...]


class Sight(NamedTuple):
    """What a seat sees.

    Args:
        fireworks: Highest rank of each firework.
        ranks: Cards of a complete firework.
        hints: Hints that are left.
        most_hints: Largest number of them.
        lives: Lives that are left.
        discarded: Cards out of the game.
        hands: Name -> hand; its own is called ``You``.
    """

    fireworks: list[int]
    ranks: int
    hints: int
    most_hints: int
    lives: int
    discarded: list[Card]
    hands: dict[str, list[Shown]]

    @classmethod
    def of(cls, anchor: str, ranks: int) -> Sight:
        """Read an anchor."""
        table, gone, *hands = anchor.split("\n")
        found = _FIREWORKS.match(table)
        assert found is not None, table
        built = [Card(COLOURS.index(name), int(top)) for name, top, _ in _PILE.findall(found[1])]
        discarded = []
        for name, rank, count in _PILE.findall(gone):
            discarded += [Card(COLOURS.index(name), int(rank))] * int(count or 1)
        hints, most_hints, lives = map(int, found.groups()[1:])
        shown = {}
        for line in hands:
            owner, _, cards = line.partition(": ")
            shown[owner] = [_shown(*parts, counts=(len(built), ranks)) for parts in _CARD.findall(cards)]
        return cls([top for _, top in built], ranks, hints, most_hints, lives, discarded, shown)

    def playable(self, card: Card) -> bool:
        """Return whether a card is the next one of its firework."""
        return self.fireworks[card.colour] == card.rank - 1

    def unseen(self) -> Counter[Card]:
        """Return how many cards of each kind are in the own hand or in the deck."""
        seen = [card for hand in self.hands.values() for card, _, _ in hand if card is not None]
        built = [Card(colour, rank) for colour, top in enumerate(self.fireworks) for rank in range(1, top + 1)]
        return unseen(len(self.fireworks), self.ranks, [*seen, *self.discarded, *built])

    def useless(self, card: Card) -> bool:
        """Return whether a card can never be played."""
        return is_useless(card, self.fireworks, self.discarded, self.ranks)


def _shown(colour: str, rank: str, colours: str, ranks: str, *, counts: tuple[int, int]) -> Shown:
    card = Card(COLOURS.index(colour), int(rank)) if colour else None
    known = range(counts[0]) if colours == "any" else [COLOURS.index(name) for name in colours.split("/")]
    values = range(1, counts[1] + 1) if ranks == "any" else map(int, ranks.split("/"))
    return Shown(card, tuple(known), tuple(values))


def _chances(shown: Shown, sight: Sight, left: Counter[Card]) -> tuple[float, float]:
    """Return the probabilities that an own card is playable, and that it is useless."""
    total = good = bad = 0
    for card, count in possible(shown.colours, shown.ranks, left):
        total += count
        good += count * sight.playable(card)
        bad += count * sight.useless(card)
    return (good / total, bad / total) if total else (0.0, 0.0)


class CertainPlayer(Player):
    """Plays cards that certainly fit; hints at playable cards of the next seats; discards useless or old cards."""

    name = "certain"
    threshold: ClassVar[float] = 1.0
    """Smallest probability at which a card is played."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Read the number of ranks; everything else is in the anchor."""
        found = _RANKS.search(view.instructions)
        assert found is not None
        self._ranks = int(found[1])

    def act(self, view: SeatView) -> str:
        """Return the action of the convention."""
        sight = Sight.of(view.anchor, self._ranks)
        left = sight.unseen()
        chances = [_chances(shown, sight, left) for shown in sight.hands["You"]]
        threshold = self.threshold if sight.lives > 1 else 1.0
        best = max(range(len(chances)), key=lambda place: chances[place][0])
        if chances[best][0] >= threshold - 1e-9:
            return f"play {best + 1}"
        if sight.hints:
            hint = self._hint(sight, view.seat, len(sight.hands))
            if hint:
                return hint
        if sight.hints < sight.most_hints:
            return f"discard {self._discard(sight, [useless for _, useless in chances]) + 1}"
        other = _next_name(view.seat, len(sight.hands))
        oldest = sight.hands[other][0].card
        assert oldest is not None
        return f"hint {other} {oldest.rank}"

    def _hint(self, sight: Sight, seat: int, seats: int) -> str:
        """Return a hint at the first playable card of the next seats that its owner does not know wholly."""
        for step in range(1, seats):
            name = _next_name(seat, seats, step)
            for card, colours, ranks in sight.hands[name]:
                if card is None or not sight.playable(card):
                    continue
                if len(ranks) > 1:
                    return f"hint {name} {card.rank}"
                if len(colours) > 1:
                    return f"hint {name} {COLOURS[card.colour]}"
        return ""

    def _discard(self, sight: Sight, useless: list[float]) -> int:
        """Return the place of a card that is certainly useless, else of the oldest without a hint, else the oldest."""
        for place, chance in enumerate(useless):
            if chance >= 1.0:
                return place
        for place, (_, colours, ranks) in enumerate(sight.hands["You"]):
            if len(colours) == len(sight.fireworks) and len(ranks) == sight.ranks:
                return place
        return 0


class LikelyPlayer(CertainPlayer):
    """Like ``certain``, but plays cards that fit with a probability of 0.6 while it has more than one life."""

    name = "likely"
    threshold: ClassVar[float] = 0.6


def _next_name(seat: int, seats: int, step: int = 1) -> str:
    return f"player_{(seat + step) % seats}"
