"""The rules of Blackjack without splitting, doubling or insurance, and who wins which play of a row of cards.

Cards are ranks from 1, the ace, to 13, the king. J, Q and K count 10, an ace 11 if the hand stays within 21 and else 1.
A deal is a row of cards: the player's first two, the dealer's face-up card, the dealer's hidden card, and then the
cards in the order in which they are drawn, by the player first and by the dealer after the player stands. The dealer
draws below 17 and stands on every 17 or more, an ace counted as 11 included. Two cards that count 21, a natural, beat
every other 21.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

RANKS = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
FIRST = 4
"""Position of the first card to draw."""
NATURAL = 22
_VALUES = (0, *range(1, 10), 10, 10, 10, 10)
"""The rank of a natural among totals; a hand above 21 is worth 0."""
_STANDS = 17


@lru_cache(maxsize=10_000)
def total(cards: tuple[int, ...]) -> tuple[int, bool]:
    """Return what a hand counts, and whether an ace of it counts 11.

    >>> total((1, 6)), total((1, 6, 13)), total((1, 1, 9)), total((13, 12, 2))
    ((17, True), (17, False), (21, True), (22, False))
    """
    count = 0
    for rank in cards:
        count += rank if rank < 10 else 10
    return (count + 10, True) if count <= 11 and 1 in cards else (count, False)


def worth(cards: tuple[int, ...]) -> int:
    """Return the number by which hands are compared: 22 for a natural, 0 for more than 21, else the total.

    >>> worth((1, 10)), worth((1, 10, 10)), worth((10, 10, 10))
    (22, 21, 0)
    """
    count = total(cards)[0]
    if count > 21:
        return 0
    return NATURAL if count == 21 and len(cards) == 2 else count


def dealer_hand(deal: Sequence[int], hits: int) -> tuple[int, ...]:
    """Return the dealer's hand at the end, if the player stands after ``hits`` more cards.

    >>> dealer_hand((10, 9, 6, 5, 2, 4, 10), hits=1)
    (6, 5, 4, 10)
    """
    cards: tuple[int, ...] = (deal[2], deal[3])
    position = FIRST + hits
    while total(cards)[0] < _STANDS:
        cards = (*cards, deal[position])
        position += 1
    return cards


def player_hand(deal: Sequence[int], hits: int) -> tuple[int, ...]:
    """Return the player's hand after ``hits`` more cards."""
    return (deal[0], deal[1], *deal[FIRST : FIRST + hits])


def result(player: tuple[int, ...], dealer: tuple[int, ...]) -> int:
    """Return 1 if the player's hand wins, 0 for a draw, -1 if it loses; a player above 21 loses in any case.

    >>> result((10, 9), (10, 8)), result((10, 9), (10, 4, 5)), result((10, 9, 3), (10, 9, 6))
    (1, 0, -1)
    """
    mine, theirs = worth(player), worth(dealer)
    if not mine or mine < theirs:
        return -1
    return int(mine > theirs)


def outcomes(deal: Sequence[int]) -> tuple[list[int], int]:
    """Return the result of standing after 0, 1, 2, ... more cards, and how many cards of the deal some play shows.

    The list ends before the card with which the player exceeds 21.

    >>> outcomes((10, 2, 10, 8, 7, 5, 10, 10))
    ([-1, 1], 6)
    """
    count, has_ace = _VALUES[deal[0]] + _VALUES[deal[1]], deal[0] == 1 or deal[1] == 1
    found: list[int] = []
    position = shown = FIRST  # running sums: this decides which deals may be dealt, many times for each that is
    while count <= 21:
        dealer, end = _dealer_worth(deal, position)
        shown = max(shown, end)
        mine = count + 10 if has_ace and count <= 11 else count
        if mine == 21 and not found:
            mine = NATURAL
        found.append((mine > dealer) - (mine < dealer))
        count += _VALUES[deal[position]]
        has_ace = has_ace or deal[position] == 1
        position += 1
    return found, max(shown, position)


def _dealer_worth(deal: Sequence[int], position: int) -> tuple[int, int]:
    """Return the worth of the dealer's hand with draws from a position on, and the position after them."""
    count, has_ace = _VALUES[deal[2]] + _VALUES[deal[3]], deal[2] == 1 or deal[3] == 1
    if has_ace and count == 11:
        return NATURAL, position
    while count < 7 or (count < 17 and not (has_ace and count <= 11)):
        count += _VALUES[deal[position]]
        has_ace = has_ace or deal[position] == 1
        position += 1
    if has_ace and count <= 11:
        return count + 10, position
    return (count if count <= 21 else 0), position


@lru_cache(maxsize=10_000)
def hand_text(cards: tuple[int, ...]) -> str:
    """Return the cards of a hand, and what they count if there is more than one.

    >>> hand_text((1, 6)), hand_text((13, 5, 1))
    ('A 6 (soft 17)', 'K 5 A (16)')
    """
    count, is_soft = total(cards)
    names = " ".join([RANKS[rank - 1] for rank in cards])
    return f"{names} ({'soft ' if is_soft else ''}{count})"
