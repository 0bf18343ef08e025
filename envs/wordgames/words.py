"""Words and their associations, from our own list; no regex here backtracks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

from turngym.envs.multiagent.speech import safe_speech

_FILE = Path(__file__).with_name("data") / "words.txt"
_SHARED = 3
"""Features that the words of a pair share, the category included."""
_SHORT = 3
_LETTERS = re.compile("[a-z]+")
_SIGNS = re.compile("[0-9@$!|]")
_LOOKS_LIKE = str.maketrans("034578@$1!|l", "oeastbasiiii")
"""Signs -> letters; those that may be an l or an i, and the l itself, all become an i."""
_ENDS = ((re.compile("(?<![aeiou])y$"), "ies"), (re.compile("fe?$"), "ves"))
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

    Pieces are joined by hyphens and the like, or are single letters. In a word with letters, digits and signs count as
    the letters they look like. Words of three letters are found alone and in the plural.

    >>> says("An APPLEs pie", "apple"), says("a-p-p-l-e!", "apple"), says("a p p l e", "apple"), says("4pp1e", "apple")
    (True, True, True, True)
    >>> says("A team", "tea"), says("Two teas", "tea"), says("We go at noon", "goat"), says("by 80 at last", "boat")
    (False, True, False, False)
    """
    chunks = [(chunk, _LETTERS.findall(chunk)) for chunk in text.casefold().split()]
    tokens = [token for _, found in chunks for token in found]
    whole = {*tokens, *("".join(found) for _, found in chunks)}
    spelled = "".join([token if len(token) == 1 else " " for token in tokens])
    disguised = [_undisguised(chunk) for chunk, found in chunks if found and _SIGNS.search(chunk)]
    for form in (word, _plural(word)):
        seen = _undisguised(form)
        if form in whole or form in spelled or seen in disguised:
            return True
        if len(word) > _SHORT and any([form in token for token in tokens] + [seen in each for each in disguised]):
            return True
    return False


def _undisguised(chunk: str) -> str:
    return "".join(_LETTERS.findall(chunk.translate(_LOOKS_LIKE)))


def _plural(word: str) -> str:
    """Return the plural of a word.

    >>> [_plural(word) for word in ("cherry", "boy", "knife", "wolf", "car")]
    ['cherries', 'boys', 'knives', 'wolves', 'cars']
    """
    for end, plural in _ENDS:
        if end.search(word):
            return end.sub(plural, word)
    return f"{word}s"
