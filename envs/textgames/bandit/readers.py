"""The world of the contextual bandit: readers with tastes, books with themes, and how much who likes what.

A reader's tastes are a vector ``u`` over five themes, told in words; a book's themes are a vector ``v``, told in words
in part. A book's mean rating by a reader is ``3 + sum(u * STRENGTH * v)``, a product of rank five. A thousand readers
exist, the same in every process; each belongs to one split by the hash of the words that describe them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.envs.instances import split_of
from turngym.seeding import stream
from turngym.types import SPLITS

THEMES = ("adventure", "romance", "humour", "science", "history")
STRENGTH = np.array([1.2, 1.1, 1.0, 0.9, 0.8])
"""How much each theme matters: the singular values of the table of ratings."""
MIDDLE = 3.0
"""Rating of every book by a reader without preferences."""
_NUM_READERS = 1000
_LEVELS = (("loves", 1.0), ("likes", 0.5), ("does not mind", 0.0), ("dislikes", -0.5), ("hates", -1.0))
_WORK = ("nurse", "student", "farmer", "lawyer", "cook", "teacher", "driver", "engineer", "painter", "retired baker")
_MAIN, _SECOND, _UNTOLD = 1.0, 0.5, 0.4

TITLES = (
    *("the salt lantern", "nine doors", "a winter of bees", "the quiet engine", "paper rivers", "the last orchard"),
    *("gulls over stone", "half a compass", "the glass ferry", "low tide letters", "the copper moth", "seven keys"),
    *("a map of dust", "the borrowed crown", "night bread", "the tin garden", "under amber hills", "the slow comet"),
    *("two left gloves", "the chalk road", "a hundred stairs", "the velvet storm", "moss and iron", "the blind clock"),
    *("cold harbour", "the paper fox", "songs for rust", "the hollow bell", "a thimble of sea", "the green ledger"),
)


class Readers(NamedTuple):
    """The readers of one split.

    Args:
        profiles: Description of each, one sentence.
        tastes: Their tastes, shape [reader, theme].
    """

    profiles: tuple[str, ...]
    tastes: NDArray[np.float64]


@lru_cache
def readers(split: str) -> Readers:
    """Return the readers of a split.

    >>> [len(readers(split).profiles) for split in ("train", "dev", "test")]
    [797, 99, 104]
    """
    generator = stream("bandit readers", 1)
    found: dict[str, list[tuple[str, list[float]]]] = {name: [] for name in SPLITS}
    for _ in range(_NUM_READERS):
        age, work = int(generator.integers(18, 81)), _WORK[int(generator.integers(len(_WORK)))]
        levels = generator.integers(len(_LEVELS), size=len(THEMES)).tolist()
        *most, last = [f"{_LEVELS[level][0]} {theme}" for level, theme in zip(levels, THEMES, strict=True)]
        profile = f"a {work}, aged {age}, who {', '.join(most)} and {last}"
        found[split_of(profile)].append((profile, [_LEVELS[level][1] for level in levels]))
    chosen = found[split]
    return Readers(tuple([profile for profile, _ in chosen]), np.array([tastes for _, tastes in chosen]))


def draw_themes(generator: np.random.Generator, count: int) -> list[list[int]]:
    """Return the main and the second theme of each book, which are different, as positions in ``THEMES``."""
    main = generator.integers(len(THEMES), size=count)
    second = (main + generator.integers(1, len(THEMES), size=count)) % len(THEMES)
    return [list(pair) for pair in zip(main.tolist(), second.tolist(), strict=True)]


def draw_books(generator: np.random.Generator, themes: list[list[int]]) -> NDArray[np.float64]:
    """Return the vectors of books with given themes, shape [book, theme]: what is told of them, and what is not."""
    books = _UNTOLD * generator.standard_normal((len(themes), len(THEMES)))
    for book, (main, second) in zip(books, themes, strict=True):
        book[main] += _MAIN
        book[second] += _SECOND
    return books


def mean_ratings(tastes: NDArray[np.float64], books: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each reader's mean rating of each book, shape [reader, book].

    >>> mean_ratings(np.array([[1.0, 0, 0, 0, -1]]), np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0.5]])).tolist()
    [[4.2, 2.6]]
    """
    ratings: NDArray[np.float64] = MIDDLE + (tastes * STRENGTH) @ books.T
    return ratings


def book_text(title: str, themes: list[int]) -> str:
    """Return what is told of a book.

    >>> book_text("nine doors", [0, 2])
    'nine doors: much adventure, some humour'
    """
    return f"{title}: much {THEMES[themes[0]]}, some {THEMES[themes[1]]}"
