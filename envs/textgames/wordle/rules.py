"""The rules of Wordle as pure functions: marks, the table of marks, and a player that picks the best guess.

A guess is marked letter by letter: G (green) the letter is right, Y (yellow) the word has the letter at another place,
X (grey) it has no more of it. Where a guess repeats a letter, greens are given first, then yellows from left to right,
and never more of both than the word has of that letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.envs.textgames.words import words
from turngym.errors import ConfigError

GREEN, YELLOW, GREY = "G", "Y", "X"
ALPHABET = "abcdefghijklmnopqrstuvwxyz"

_FEW = 24
"""Words up to which all pairs are compared, which is faster there."""

Row: TypeAlias = tuple[str, str]
"""A guess and its marks."""


def marks(guess: str, hidden: str) -> str:
    """Return the marks of a guess that is as long as the hidden word.

    >>> marks("eerie", "where")
    'YXYXG'
    """
    if set(hidden).isdisjoint(guess):
        return GREY * len(guess)
    left = [there for here, there in zip(guess, hidden) if here != there]  # noqa: B905  (the keyword costs time)
    found = []
    for here, there in zip(guess, hidden):  # noqa: B905
        if here == there:
            found.append(GREEN)
        elif here in left:
            left.remove(here)
            found.append(YELLOW)
        else:
            found.append(GREY)
    return "".join(found)


def fits(word: str, rows: Iterable[Row]) -> bool:
    """Return whether a word could be the hidden one, given the rows so far.

    >>> fits("crane", [("crate", "GGGXG")]), fits("crate", [("crane", "GGGXG")])
    (True, True)
    >>> fits("brake", [("crane", "GGGXG")])
    False
    """
    return all(marks(guess, word) == given for guess, given in rows)


def keyboard(rows: Iterable[Row]) -> tuple[str, str, str]:
    """Return the letters that the word has, those it has not, and those not tried yet.

    >>> keyboard([("eerie", "YXYXG")])
    ('er', 'i', 'abcdfghjklmnopqstuvwxyz')
    """
    tried, present = set[str](), set[str]()
    for guess, given in rows:
        tried.update(guess)
        present.update(letter for letter, mark in zip(guess, given, strict=True) if mark != GREY)
    untried = "".join(letter for letter in ALPHABET if letter not in tried)
    return "".join(sorted(present)), "".join(sorted(tried - present)), untried


@cache
def closeness(given: str) -> float:
    """Return how near marks come to all green: 1 a green, 1/2 a yellow, as a share of the letters.

    >>> closeness("GYX"), closeness("GGG")
    (0.5, 1.0)
    """
    return (2 * given.count(GREEN) + given.count(YELLOW)) / (2 * len(given))


def mark_codes(guesses: NDArray[np.uint8], hidden: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return the marks of every guess for every hidden word, each as one number.

    The number has one digit in base 3 a letter, first letter first: 2 green, 1 yellow, 0 grey.

    Args:
        guesses: Letters, [guess, letter].
        hidden: Letters, [hidden, letter].

    Returns:
        Numbers, [guess, hidden].
    """
    length = guesses.shape[1]
    green = [guesses[:, None, i] == hidden[None, :, i] for i in range(length)]
    codes = np.zeros((len(guesses), len(hidden)), np.uint16)
    for i in range(length):
        spare = np.zeros(codes.shape, np.int8)  # of this letter, what no green and no earlier yellow has used
        for j in range(length):
            spare += (guesses[:, None, i] == hidden[None, :, j]) & ~green[j]
            if j < i:
                spare -= (guesses[:, i] == guesses[:, j])[:, None] & ~green[j]
        codes = (3 * codes + np.where(green[i], 2, spare > 0)).astype(np.uint16)
    return codes


def code(given: str) -> int:
    """Return marks as the number of :func:`mark_codes`.

    >>> code("GYX")
    21
    """
    return int(given.translate({ord(GREEN): "2", ord(YELLOW): "1", ord(GREY): "0"}), 3)


def letters(some: Iterable[str]) -> NDArray[np.uint8]:
    """Return words of one length as letters, [word, letter]."""
    return np.array([list(word.encode()) for word in some], np.uint8)


@cache
def _letters(length: int) -> NDArray[np.uint8]:
    return letters(words(length))


@cache
def _table(length: int) -> NDArray[np.uint16]:
    """Return the marks of every word of the list for every other, [guess, hidden]."""
    return mark_codes(_letters(length), _letters(length))


@lru_cache(maxsize=10_000)
def best_guess(length: int, rows: tuple[Row, ...], only_fitting: bool = False) -> str:
    """Return the guess of the list that leaves the fewest words on average.

    Among equals a word that could be the hidden one comes first, then the alphabet decides.

    Args:
        length: Number of letters.
        rows: Guesses so far with their marks.
        only_fitting: Whether to choose among the words that could be the hidden one.

    Raises:
        ConfigError: No word of the list fits.

    >>> rows = ("batch", "XGGGG"), ("latch", "XGGGG"), ("match", "XGGGG")
    >>> best_guess(5, rows), best_guess(5, rows, only_fitting=True)  # catch, patch or watch
    ('caper', 'catch')
    """
    known = words(length)
    candidates = np.arange(len(known))
    for guess, given in rows:
        found = mark_codes(letters([guess]), _letters(length)[candidates])[0]
        candidates = candidates[found == code(given)]
    if not len(candidates):
        raise ConfigError(f"no word of {length} letters fits these guesses and marks: {rows}.")
    if len(candidates) <= 2:
        return known[int(candidates[0])]
    pool = candidates if only_fitting else np.arange(len(known))
    possible = set(candidates.tolist())
    left = _words_left(_table(length)[np.ix_(pool, candidates)])
    keys = [(count, index not in possible, index) for count, index in zip(left, pool.tolist(), strict=True)]
    return known[min(keys)[-1]]


def _words_left(answers: NDArray[np.uint16]) -> list[int]:
    """Return how many words each guess leaves on average, times the number of words.

    That is the sum of the squared sizes of the groups with equal answers, which is the number of pairs of words with
    equal answers.

    Args:
        answers: Marks as numbers, [guess, word].
    """
    if answers.shape[1] <= _FEW:
        pairs: list[int] = (answers[:, :, None] == answers[:, None, :]).sum((1, 2)).tolist()
        return pairs
    return [int(np.square(np.bincount(row)).sum()) for row in answers]
