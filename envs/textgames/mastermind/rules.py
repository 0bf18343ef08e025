"""The rules of Mastermind as pure functions: pegs, the codes that fit, and a player that picks the next guess.

A code is a text of digits from 1 up. A black peg stands for a digit at its right place; a white peg for a digit that
the code has at another place, where every digit of the code and of the guess counts at most once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import permutations, product
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

DIGITS = "123456789"

Row: TypeAlias = tuple[str, int, int]
"""A guess, its black and its white pegs."""
_Codes: TypeAlias = NDArray[np.uint8]
"""Digits less one, [code, place]."""

_TRY_ALL_BELOW = 2000
_MOST_TRIED = 50


class Kind(NamedTuple):
    """Which codes there are.

    Args:
        length: Digits of a code.
        colours: Different digits there are.
        repeats: Whether a digit may occur twice.
    """

    length: int
    colours: int
    repeats: bool


def pegs(guess: str, hidden: str) -> tuple[int, int]:
    """Return the black and the white pegs of a guess that is as long as the hidden code.

    >>> pegs("1122", "1212")
    (2, 2)
    """
    black = common = 0
    for here, there in zip(guess, hidden):  # noqa: B905  (the keyword costs time)
        if here == there:
            black += 1
        if here in hidden:
            common += 1
    if common > black and len(set(guess)) < len(guess):
        common = sum([min(guess.count(digit), hidden.count(digit)) for digit in set(guess)])
    return black, common - black


def fits(code: str, rows: Iterable[Row]) -> bool:
    """Return whether a code could be the hidden one, given the rows so far.

    >>> fits("2134", [("1234", 2, 2)]), fits("4321", [("1234", 2, 2)])
    (True, False)
    """
    return all(pegs(guess, code) == (black, white) for guess, black, white in rows)


@lru_cache(maxsize=32)
def all_codes(kind: Kind) -> tuple[str, ...]:
    """Return every code in rising order.

    >>> all_codes(Kind(2, 3, repeats=False))
    ('12', '13', '21', '23', '31', '32')
    """
    digits = DIGITS[: kind.colours]
    made = product(digits, repeat=kind.length) if kind.repeats else permutations(digits, kind.length)
    return tuple(map("".join, made))


@lru_cache(maxsize=32)
def code_set(kind: Kind) -> frozenset[str]:
    """Return every code, for looking one up."""
    return frozenset(all_codes(kind))


def answer(guess: str, hidden: str) -> tuple[Row, str]:
    """Return a guess with its pegs, and the line that tells them.

    >>> answer("1122", "1212")
    (('1122', 2, 2), '1 1 2 2: 2 black, 2 white')
    """
    black, white = pegs(guess, hidden)
    return (guess, black, white), f"{' '.join(guess)}: {black} black, {white} white"


remembered_answer = lru_cache(maxsize=20_000)(answer)
"""The same, for codes so few that pairs come again."""


def peg_codes(guesses: _Codes, hidden: _Codes, colours: int) -> NDArray[np.uint8]:
    """Return the pegs of every guess for every hidden code as one number, ``black * (length + 1) + white``.

    Returns:
        Numbers, [guess, hidden].
    """
    length = guesses.shape[1]
    black = np.zeros((len(guesses), len(hidden)), np.uint8)
    common = np.zeros_like(black)
    for place in range(length):
        black += guesses[:, None, place] == hidden[None, :, place]
    for colour in range(colours):
        ours, theirs = (guesses == colour).sum(1, np.uint8), (hidden == colour).sum(1, np.uint8)
        common += np.minimum(ours[:, None], theirs[None, :])
    return black * np.uint8(length + 1) + common - black


def as_digits(codes: Iterable[str]) -> _Codes:
    """Return codes of one length as digits less one, [code, place]."""
    return np.array([list(code.encode()) for code in codes], np.uint8) - np.uint8(ord("1"))


@lru_cache(maxsize=8)
def _digits(kind: Kind) -> _Codes:
    return as_digits(all_codes(kind))


@cache
def _openings(kind: Kind) -> NDArray[np.intp]:
    """Return the codes that differ in how often digits occur: for a first guess, no other difference matters."""
    codes = all_codes(kind)
    patterns: dict[tuple[int, ...], int] = {}
    for index, code in enumerate(codes):
        patterns.setdefault(tuple(sorted(map(code.count, set(code)))), index)
    return np.array(list(patterns.values()))


@lru_cache(maxsize=10_000)
def best_guess(kind: Kind, rows: tuple[Row, ...]) -> str:
    """Return the guess whose worst answer leaves the fewest codes (Knuth, The computer as Master Mind, 1977).

    Among equals a code that could be the hidden one comes first, then the one that leaves fewer codes on average, then
    the smaller one. If there are very many codes, only some of those that could be the hidden one are tried.

    Args:
        kind: Which codes there are.
        rows: Guesses so far with their pegs.

    Raises:
        ConfigError: No code fits.

    >>> best_guess(Kind(4, 6, repeats=True), ())
    '1122'
    """
    codes, digits = all_codes(kind), _digits(kind)
    candidates = np.arange(len(codes))
    for guess, black, white in rows:
        found = peg_codes(as_digits([guess]), digits[candidates], kind.colours)[0]
        candidates = candidates[found == black * (kind.length + 1) + white]
    if not len(candidates):
        raise ConfigError(f"no code of {kind.length} digits fits these guesses and pegs: {rows}.")
    if len(candidates) <= 2:
        return codes[int(candidates[0])]
    pool, possible = _pool(kind, rows, candidates), set(candidates.tolist())
    answers = peg_codes(digits[pool], digits[candidates], kind.colours)
    keys: list[tuple[int, bool, int, int]] = []  # the last entry is the guess
    for index, answer in zip(pool.tolist(), answers, strict=True):
        sizes = np.bincount(answer)
        keys.append((int(sizes.max()), index not in possible, int(sizes @ sizes), index))
    return codes[min(keys)[-1]]


def _pool(kind: Kind, rows: tuple[Row, ...], candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return which codes to try as the next guess."""
    if not rows:
        return _openings(kind)
    if len(all_codes(kind)) < _TRY_ALL_BELOW:
        return np.arange(len(all_codes(kind)))
    return candidates[:: -(-len(candidates) // _MOST_TRIED)]
