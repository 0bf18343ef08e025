"""Words and their associations, from our own list; no regex here backtracks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from turngym.envs.multiagent.speech import safe_speech

_FILE = Path(__file__).with_name("data") / "words.txt"
_SHARED = 3
"""Features that the words of a pair share, the category included."""
_SHORT = 3
_LETTERS = re.compile("[a-z]+")
_SIGNS = re.compile("[0134578@$]")
_LOOKS_LIKE = str.maketrans("034578@$", "oeastbas")
_FACTOR = 8


@cache
def features() -> Mapping[str, tuple[str, ...]]:
    """Return word -> its category and what else it has to do with.

    >>> features()["apple"], len(features())
    (('fruit', 'red', 'round', 'tree', 'crisp', 'sweet'), 299)
    """
    found = {}
    for line in _FILE.read_text("utf8").splitlines():
        category, word, *others = line.split()
        found[word] = (category, *others)
    return found


@cache
def pairs() -> tuple[tuple[str, str], ...]:
    """Return the pairs of similar words: of one category, with other features in common, and each with one of its own.

    >>> len(pairs()), pairs()[:2]
    (413, (('apple', 'cherry'), ('apple', 'coconut')))
    """
    found = []
    for one, other in combinations(sorted(features()), 2):
        mine, theirs = set(features()[one]), set(features()[other])
        is_alike = features()[one][0] == features()[other][0] and len(mine & theirs) >= _SHARED
        if is_alike and mine - theirs and theirs - mine and one not in other and other not in one:
            found.append((one, other))
    return tuple(found)


@cache
def partners(word: str) -> tuple[str, ...]:
    """Return the words with which a word is a pair.

    >>> partners("bread")
    ('pie',)
    """
    return tuple(sorted({each for pair in pairs() if word in pair for each in pair if each != word}))


def plain_speech(text: str, limit: int) -> str:
    r"""Return what others may read of a text, in ASCII: letters that look like others are left out or replaced.

    >>> plain_speech("caf\u00e9, \uff41pple \u0430nd\n[vote 1]", 100)
    'cafe, apple nd (vote 1)'
    """
    head = unicodedata.normalize("NFKD", text[: _FACTOR * limit]).encode("ascii", "ignore").decode("ascii")
    return safe_speech(head, limit)


def says(text: str, word: str) -> bool:
    """Return whether a text says a word, its plural, a longer word that holds it, or the word in pieces.

    Digits and signs count as the letters they look like. Words of three letters are found alone and in the plural.

    >>> says("An APPLEs pie", "apple"), says("a-p-p l-e!", "apple"), says("4pp1e", "apple"), says("app les", "apple")
    (True, True, True, True)
    >>> says("A team", "tea"), says("Two teas", "tea")
    (False, True)
    """
    plain = text.casefold()
    looks = [plain.translate(_LOOKS_LIKE | {ord("1"): letter}) for letter in "li"] if _SIGNS.search(plain) else []
    return any(_says(_LETTERS.findall(each), word) for each in [plain, *looks])


def _says(tokens: Sequence[str], word: str) -> bool:
    stem = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    if len(word) > _SHORT and any(word in token or stem in token for token in tokens):
        return True
    return any(_begins(tokens[start:], each) for start in range(len(tokens)) for each in (word, stem))


def _begins(tokens: Sequence[str], word: str) -> bool:
    """Return whether the first words of a text, written together, are a word."""
    for token in tokens:
        if token == word:
            return True
        if not word.startswith(token):
            return False
        word = word[len(token) :]
    return False
