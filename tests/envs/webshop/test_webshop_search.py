"""The search engine against a plain implementation of BM25 in floats."""

import math
import random
from collections import Counter

import pytest

from turngym.envs.webshop.generator import generate_products
from turngym.envs.webshop.search import K1, MOST_RESULTS, B, Index, words


def plain_scores(documents: list[str], query: str) -> list[float]:
    """Return each document's score, straight from the formula."""
    texts = [words(document) for document in documents]
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        counts, score = Counter(text), 0.0
        for word in words(query):
            having = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            times = counts[word]
            score += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * len(text) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_that_of_the_formula(seed: int) -> None:
    draw = random.Random(seed)
    documents = [" ".join(draw.choices("abcdefgh", k=draw.randint(1, 12))) for _ in range(120)]
    query = " ".join(draw.choices("abcdefghz", k=4))
    scores = plain_scores(documents, query)
    found = Index(documents).search(query)
    assert len(found) == min(MOST_RESULTS, sum(score > 0 for score in scores))
    best = sorted(scores, reverse=True)[: len(found)]
    assert [scores[place] for place in found] == pytest.approx(best, rel=1e-5)


def test_equal_scores_keep_the_order_of_the_catalogue() -> None:
    index = Index(["red hat"] * 80)
    assert index.search("hat") == tuple(range(MOST_RESULTS))


@pytest.mark.parametrize("query", ["", "   ", "!!!", "unknown words", "\x00\ud800"])
def test_a_query_without_known_words_finds_nothing(query: str) -> None:
    assert Index(["red hat", "blue hat"]).search(query) == ()


def test_an_empty_shop_finds_nothing() -> None:
    assert Index([]).search("hat") == ()


def test_case_and_punctuation_do_not_matter() -> None:
    index = Index([product.title for product in generate_products(60, 0)])
    title = generate_products(60, 0)[7].title
    assert index.search(title)[0] == index.search(title.upper().replace(",", " ;"))[0] == 7
