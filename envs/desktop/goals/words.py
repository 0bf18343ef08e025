"""Words that goals are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ITEMS = (
    "Lamp", "Desk", "Chair", "Shelf", "Carpet", "Clock", "Mirror", "Kettle", "Toaster", "Blanket", "Bottle", "Basket",
    "Ladder", "Hammer", "Pencil", "Notebook", "Backpack", "Umbrella", "Candle", "Curtain", "Pillow", "Teapot", "Vase",
    "Bucket",
)  # fmt: skip
NAMES = (
    "Amira", "Bruno", "Chloe", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Liam", "Mona",
    "Nils", "Olga", "Pablo", "Rosa", "Samir", "Tara", "Viktor",
)  # fmt: skip
_VERBS = ("calls", "meets", "visits", "thanks", "invites", "helps", "reminds", "answers")
_TIMES = (
    "on Monday", "on Tuesday", "on Friday", "at noon", "tomorrow", "after lunch", "next week", "in the morning",
    "before ten", "in April",
)  # fmt: skip
_THINGS = (
    "about the garden", "about the budget", "about the trip", "with the report", "with the move", "for the concert",
    "about the new roof", "with the boxes", "about the rent", "for the exam",
)  # fmt: skip
FILES = ("plan", "draft", "list", "summary", "backup", "report", "final", "archive", "copy", "minutes")
SHEETS = ("Stock", "Sales", "Budget", "Orders", "Costs", "Prices", "Quarter", "Totals")


def pick(generator: np.random.Generator, words: Sequence[str], count: int) -> list[str]:
    """Return different words."""
    return [words[int(number)] for number in generator.permutation(len(words))[:count]]


def one(generator: np.random.Generator, words: Sequence[str]) -> str:
    """Return one word."""
    return words[int(generator.integers(len(words)))]


def sentence(generator: np.random.Generator) -> str:
    """Return a sentence."""
    first, second = pick(generator, NAMES, 2)
    return f"{first} {one(generator, _VERBS)} {second} {one(generator, _TIMES)} {one(generator, _THINGS)}."


def sentences(generator: np.random.Generator, count: int) -> list[str]:
    """Return different sentences."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[sentence(generator)] = None
    return list(found)
