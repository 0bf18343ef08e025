"""Ranking products for a query: BM25 over titles, features, descriptions and options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.arithmetic import float_sum

K1 = 0.9
B = 0.4
MOST_RESULTS = 50
_WORD = re.compile(r"[a-z0-9]+")
_Postings: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]


def words(text: str) -> list[str]:
    """Return the words of a text: letters and digits, lower case.

    >>> words("Men's T-Shirt, 100% cotton")
    ['men', 's', 't', 'shirt', '100', 'cotton']
    """
    return _WORD.findall(text.lower())


class Index:
    """Finds documents by the words that they share with a query (BM25 with k1 0.9 and b 0.4, Robertson et al. 1994).

    Args:
        documents: Texts; results name them by their place in this list.

    >>> Index(["red shoes", "blue shoes for men", "a red hat"]).search("red hat")
    (2, 0)
    """

    def __init__(self, documents: Sequence[str]) -> None:
        counts = [Counter(words(document)) for document in documents]
        lengths = np.array([float_sum(count.values()) for count in counts], dtype=np.float64)
        norm = K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean()) if len(lengths) else 1.0))
        found: dict[str, tuple[list[int], list[float]]] = {}
        for number, count in enumerate(counts):
            for word, times in count.items():
                places, weights = found.setdefault(word, ([], []))
                places.append(number)
                weights.append(times * (K1 + 1) / (times + norm[number]))
        total = len(documents)
        self._postings: dict[str, _Postings] = {
            word: (
                np.array(places, dtype=np.int32),
                np.array(weights, dtype=np.float32)
                * np.float32(np.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5))),
            )
            for word, (places, weights) in found.items()
        }
        self.num_documents = total
        self.search = lru_cache(maxsize=4096)(self._search)
        """``search(query)``: places of the best documents, best first; those that share no word are left out."""

    def _search(self, query: str) -> tuple[int, ...]:
        scores = np.zeros(self.num_documents, dtype=np.float32)
        for word in words(query):
            if word in self._postings:
                places, weights = self._postings[word]
                scores[places] += weights
        found = np.flatnonzero(scores)
        if len(found) > MOST_RESULTS:
            least = np.partition(scores[found], -MOST_RESULTS)[-MOST_RESULTS]
            found = found[scores[found] >= least]
        order = np.argsort(-scores[found], kind="stable")[:MOST_RESULTS]  # ties: the first document first
        return tuple(found[order].tolist())
