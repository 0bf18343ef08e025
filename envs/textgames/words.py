"""English words for word games, from the lists of the package wonderwords.

Source: the nouns, adjectives and verbs of wonderwords (https://github.com/mrmaxguns/wonderwordsmodule), under the MIT
licence; its list of offensive words, from Google-profanity-words under the Apache licence 2.0, is taken out. Nothing is
downloaded and nothing copied: the lists are read where pip has put them, once per process, on first use.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from turngym.envs.instances import split_of
from turngym.errors import MissingExtra

SHORTEST, LONGEST = 3, 10
"""Lengths for which there are words enough."""
FEWEST_FOR_SPLITS = 500
"""Instances below which the games of this family do not hold any out."""

_LISTS = ("nounlist.txt", "adjectivelist.txt", "verblist.txt")
_OFFENSIVE = "profanitylist.txt"


@cache
def words(length: int) -> tuple[str, ...]:
    """Return all words of one length: lower case, a to z only, in alphabetical order, none twice.

    Args:
        length: Number of letters.

    Raises:
        MissingExtra: The package wonderwords is not installed.

    >>> len(words(5)) > 1000, "house" in words(5), words(5) == tuple(sorted(set(words(5))))
    (True, True, True)
    """
    return _by_length().get(length, ())


@cache
def words_of_split(length: int, split: str) -> tuple[str, ...]:
    """Return the words of one length that belong to a split; all of them where they are too few for splits.

    A word belongs to the same split in every game.

    >>> len(words_of_split(5, "train")) > len(words_of_split(5, "test")) > 0
    True
    """
    if is_finite(length):
        return words(length)
    return tuple([word for word in words(length) if split_of(word) == split])


def is_finite(length: int) -> bool:
    """Return whether the words of a length are too few for splits.

    >>> is_finite(3), is_finite(5)
    (True, False)
    """
    return len(words(length)) < FEWEST_FOR_SPLITS


@cache
def word_list(kind: str) -> frozenset[str]:
    """Return the words of one kind, as they are listed.

    Args:
        kind: ``"noun"``, ``"adjective"`` or ``"verb"``.

    Raises:
        MissingExtra: The package wonderwords is not installed.

    >>> "house" in word_list("noun"), "house" in word_list("adjective")
    (True, False)
    """
    return frozenset(_read(_folder() / f"{kind}list.txt"))


@cache
def _by_length() -> dict[int, tuple[str, ...]]:
    folder = _folder()
    offensive = _read(folder / _OFFENSIVE)
    found = {word for name in _LISTS for word in _read(folder / name)} - offensive
    groups: dict[int, list[str]] = {}
    for word in sorted(found):
        if word.isascii() and word.isalpha() and word.islower():
            groups.setdefault(len(word), []).append(word)
    return {length: tuple(group) for length, group in groups.items() if SHORTEST <= length <= LONGEST}


def _read(path: Path) -> set[str]:
    return set(path.read_text("utf8").split("\n"))


def _folder() -> Path:
    """Return where the lists lie; finding them does not import the package."""
    spec = importlib.util.find_spec("wonderwords")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("word games need the package wonderwords, which is not installed: pip install wonderwords.")
    return Path(next(iter(spec.submodule_search_locations))) / "assets"
