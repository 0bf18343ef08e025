"""The rules of Hangman as pure functions, and a player that picks the next guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from turngym.envs.textgames.words import words
from turngym.errors import ConfigError

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
HIDDEN = "_"


def revealed(hidden: str, guessed: str) -> str:
    """Return the word with the letters that have not been guessed covered.

    >>> revealed("letter", "tx")
    '__tt__'
    """
    return "".join([letter if letter in guessed else HIDDEN for letter in hidden])


def fits(word: str, shown: str, guessed: Iterable[str], refused: Iterable[str] = ()) -> bool:
    """Return whether a word could be the hidden one.

    Args:
        word: A word.
        shown: The hidden word with the letters not guessed covered.
        guessed: The letters guessed so far.
        refused: Words that were guessed and wrong.

    >>> fits("better", "__tt__", "tx"), fits("bottle", "__tt__", "te"), fits("extort", "__tt__", "tx")
    (True, False, False)
    """
    return len(word) == len(shown) and revealed(word, "".join(guessed)) == shown and word not in refused


@lru_cache(maxsize=10_000)
def best_guess(shown: str, guessed: str, refused: tuple[str, ...] = ()) -> str:
    """Return the letter that most of the words that fit contain, or the word where only one fits.

    Among letters that equally many words contain, the one whose places tell most apart comes first, then the alphabet
    decides.

    Args:
        shown: The hidden word with the letters not guessed covered.
        guessed: The letters guessed so far.
        refused: Words that were guessed and wrong.

    Raises:
        ConfigError: No word of the list fits.

    >>> best_guess("h_use", "ehsu"), best_guess("__tt__", "ht")
    ('house', 'e')
    """
    possible = [word for word in words(len(shown)) if fits(word, shown, guessed, refused)]
    if not possible:
        raise ConfigError(f"no word fits {shown!r} with the guesses {guessed!r} and without {refused}.")
    if len(possible) == 1:
        return possible[0]

    def value(letter: str) -> tuple[int, int]:
        views = Counter([revealed(word, letter) for word in possible])
        misses = views[HIDDEN * len(shown)]
        return len(possible) - misses, -sum(count * count for count in views.values())

    return max((letter for letter in ALPHABET if letter not in guessed), key=value)
