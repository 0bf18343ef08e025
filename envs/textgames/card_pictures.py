"""Images of playing cards and of rows of them; a card shows its rank, and suits play no part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from turngym.envs.textgames import drawing

CARD_HEIGHT, CARD_WIDTH = 48, 36
GAP = 4
BACK = "?"
"""Stands for a card that is face down."""


@lru_cache
def card(rank: str) -> drawing.Picture:
    """Return the image of a card, read-only; of its back for ``BACK``.

    >>> card("K").shape, bool((card("K") == card("Q")).all())
    ((48, 36, 3), False)
    """
    is_back = rank == BACK
    picture = drawing.canvas(CARD_HEIGHT, CARD_WIDTH, drawing.BLUE if is_back else drawing.WHITE)
    drawing.frame(picture, drawing.DARK, 2)
    drawing.write(picture, "#" if is_back else rank, drawing.CYAN if is_back else drawing.BLACK, scale=2)
    picture.flags.writeable = False
    return picture


def row_width(cards: int) -> int:
    """Return the width of a row of so many cards side by side, gaps at both ends included.

    >>> row_width(2)
    84
    """
    return GAP + cards * (CARD_WIDTH + GAP)


def place_row(picture: drawing.Picture, top: int, ranks: Sequence[str]) -> None:
    """Put a row of cards into an image from the left, later ones over earlier ones if there is little room.

    Args:
        picture: The image, at least one card wide.
        top: Position of the first card, in pixels.
        ranks: Visible cards.
    """
    step = CARD_WIDTH + GAP
    room = picture.shape[1] - 2 * GAP - CARD_WIDTH
    if len(ranks) > 1:
        step = min(step, room // (len(ranks) - 1))
    for position, rank in enumerate(ranks):
        left = GAP + position * step
        picture[top : top + CARD_HEIGHT, left : left + CARD_WIDTH] = card(rank)
