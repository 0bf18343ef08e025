"""Comparing answers more widely than as published: Unicode forms, quotes, dashes, invisible signs, number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from turngym.envs.search.answers import normalise

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {word: 20 + 10 * n for n, word in enumerate(_TENS)}
_FACTORS = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_KEPT = (
    (re.compile(r"(?<![\w)\]])[-\u2212\u2013](?=[$\u20ac\u00a3]?\.?\d)"), "\u2296"),
    (re.compile(r"(?<=\d)\.(?=\d)|(?<!\w)\.(?=\d)"), "\u2299"),
    (re.compile(r"(?<=[A-Za-z])#"), "\u266f"),
    (re.compile(r"(?<=[A-Za-z])\+\+?(?!\w)"), "\u2295"),
)
"""Signs that are part of a number or a name, and the symbols that stand for them: -5, 1.5, C#, C++."""
_LONGEST_NUMBER = 12
"""Digits of a number that a factor may follow."""


def normalise_wide(text: str) -> str:
    """Return a text in one Unicode form, without invisible signs and punctuation, its number words as digits.

    The sign and the point of a number stay, as do the signs of names such as "C#".

    >>> normalise_wide("The \u201cForty\u2013Two\u201d Crows\u200b"), normalise_wide("two hundred and five")
    ('42 crows', '205')
    """
    text = unicodedata.normalize("NFKC", text)
    for signs, symbol in _KEPT:
        text = signs.sub(symbol, text)
    plain = "".join(map(_plain, text))
    return " ".join(_with_digits(normalise(unicodedata.normalize("NFKC", plain.casefold())).split()))


def _plain(sign: str) -> str:
    """Return a dash as a blank, and other punctuation and invisible signs as nothing."""
    kind = unicodedata.category(sign)
    if kind == "Pd" or sign in "\u2212/":
        return " "
    return "" if kind[0] == "P" or kind == "Cf" else sign


def _with_digits(words: Iterable[str]) -> list[str]:
    """Return words with each run of number words as one number."""
    found: list[str] = []
    run: list[str] = []
    for word in (*words, ""):
        is_linked = word == "and" and bool(run) and run[-1] in _FACTORS
        if is_linked or _may_follow(run, word):
            run.append(word)
            continue
        found += _numbers(run)
        run = [word] if _may_follow([], word) else []
        if word and not run:
            found.append(word)
    return found


def _may_follow(run: list[str], word: str) -> bool:
    """Return whether a word is the next part of the number that the run before it starts."""
    last = run[-1] if run else ""
    if word in _FACTORS:
        return last != "and"
    if _is_digits(word):
        return not run
    if word not in _VALUES or _is_digits(last):
        return False
    return last in ("", "and", *_FACTORS) or (_VALUES[last] >= 20 and 0 < _VALUES[word] < 10)


def _is_digits(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _LONGEST_NUMBER


def _numbers(run: list[str]) -> list[str]:
    """Return a run of number words as its number; a number in digits alone, and a last "and", stay as they are."""
    if not run:
        return []
    if run[-1] == "and":
        return [*_numbers(run[:-1]), "and"]
    if len(run) == 1 and _is_digits(run[0]):
        return run
    total, part = 0, 0
    for word in run:
        if word == "hundred":
            part = (part or 1) * 100
        elif word in _FACTORS:
            total, part = total + (part or 1) * _FACTORS[word], 0
        elif word != "and":
            part += _VALUES[word] if word in _VALUES else int(word)
    return [str(total + part)]
