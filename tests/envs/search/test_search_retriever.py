"""The engines behind one protocol, and files of passages."""

import gzip
import json
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turngym.envs.search.documents import Document, content_hash, read_documents
from turngym.envs.search.engines.qdrant import read_address
from turngym.envs.search.env import SearchQA
from turngym.envs.search.retriever import RETRIEVERS, LocalRetriever, default_engine, make_retriever, query_words
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError, MissingExtra, UnknownName

ENGINES = ("tantivy", "bm25s", "fts5")
DOCUMENTS = make_world(300, 0).documents


@pytest.fixture(scope="module", params=ENGINES)
def retriever(request: pytest.FixtureRequest) -> LocalRetriever:
    return make_retriever(DOCUMENTS, request.param)


def test_all_engines_are_registered_and_the_first_installed_one_is_the_default() -> None:
    assert set(RETRIEVERS) >= set(ENGINES)
    assert default_engine() == "tantivy"
    assert type(make_retriever(DOCUMENTS[:5])) is RETRIEVERS["tantivy"]


def test_every_document_is_found_by_its_title(retriever: LocalRetriever) -> None:
    hits = retriever.search([document.title for document in DOCUMENTS], 3)
    for document, found in zip(DOCUMENTS, hits, strict=True):
        assert document in [hit.document for hit in found]


def test_scores_fall_and_only_documents_that_share_a_word_are_returned(retriever: LocalRetriever) -> None:
    for query in ("people speak Ardic", "Regatta", "works of university bridges"):
        found = retriever.search([query], 20)[0]
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True) and min(scores) > 0
        assert len({hit.document.id for hit in found}) == len(found)


def test_top_k_is_a_prefix(retriever: LocalRetriever) -> None:
    ten = retriever.search(["was born in the year"], 10)[0]
    assert len(ten) == 10
    for top_k in range(10):
        assert retriever.search(["was born in the year"], top_k)[0] == ten[:top_k]


def test_equal_passages_come_in_the_order_of_the_corpus() -> None:
    same = [Document(str(number), "Tea", "green leaves") for number in range(12)]
    for engine in ENGINES:
        found = make_retriever(same, engine).search(["leaves"], 5)[0]
        assert [hit.document.id for hit in found] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "?!",
        "\x00",
        "\ud800",
        '"unbalanced',
        "a AND (b OR",
        "contents:x",
        "*",
        "NEAR(a)",
        "-tea",
        "x" * 10_000,
    ],
)
def test_no_query_breaks_an_engine(retriever: LocalRetriever, query: str) -> None:
    assert isinstance(retriever.search([query], 3)[0], list)


def test_operators_of_an_engine_are_words(retriever: LocalRetriever) -> None:
    title = DOCUMENTS[7].title
    for query in (f'"{title}', f"{title} AND NOT {title}", f"contents:{title}", f"-{title}"):
        assert DOCUMENTS[7] in [hit.document for hit in retriever.search([query], 3)[0]]


def test_a_batch_gives_what_single_searches_give_in_threads_too(retriever: LocalRetriever) -> None:
    queries = [document.text[:60] for document in DOCUMENTS[:40]]
    batch = retriever.search(queries, 3)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: retriever.search([query], 3)[0], queries)) == batch


def test_two_indexes_of_one_corpus_agree_to_the_bit(retriever: LocalRetriever) -> None:
    again = type(retriever)(DOCUMENTS)
    queries = [document.text for document in DOCUMENTS[:50]]
    assert again.search(queries, 5) == retriever.search(queries, 5)
    assert again.version == retriever.version == content_hash(DOCUMENTS)


def test_a_corpus_is_needed_and_an_unknown_engine_is_named() -> None:
    with pytest.raises(ConfigError, match="at least one document"):
        make_retriever([])
    with pytest.raises(UnknownName, match="tantivi"):
        make_retriever(DOCUMENTS, "tantivi")


@pytest.mark.parametrize("engine", ["tantivy", "bm25s"])
def test_an_engine_that_is_not_installed_names_its_extra(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(MissingExtra, match=rf"needs the package {engine}.*turngym\[search\]"):
        make_retriever(DOCUMENTS, engine)


def test_engines_without_a_setting_take_nothing_after_a_colon() -> None:
    with pytest.raises(ConfigError, match="takes nothing after a colon"):
        make_retriever(DOCUMENTS, "fts5:fast")


def test_both_forms_of_corpus_lines_are_read(tmp_path: Path) -> None:
    lines = [{"id": "1", "title": "A", "text": "b\nc"}, {"id": 2, "contents": '"A"\nb'}]
    for name, opener in (("c.jsonl", open), ("c.jsonl.gz", gzip.open)):
        with opener(tmp_path / name, "wt") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
        assert read_documents(tmp_path / name) == (Document("1", "A", "b\nc"), Document("2", "A", "b"))
    (tmp_path / "c.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(ConfigError, match="is not a corpus"):
        read_documents(tmp_path / "c.jsonl")


def test_without_the_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtra, match=r"turngym\[qdrant\]"):
        SearchQA(size=100, url="qdrant+http://127.0.0.1:6333/wiki")


AN_ADDRESS_THAT_IS_NONE_IS_REFUSED: list[str] = [
    "",
    "localhost",
    "http://x",
    "http://x/",
    "http://x/a/b",
    "ftp://x/a",
    "http://x/a?k=1",
    ":memory:?k=1",
]


def test_an_address_that_is_none_is_refused() -> None:
    for address in AN_ADDRESS_THAT_IS_NONE_IS_REFUSED:
        with pytest.raises(ConfigError, match="is named like"):
            read_address(address)


def test_an_address_may_name_a_model() -> None:
    assert read_address("https://x:1/a?model=/m/n") == ("https://x:1", "a", "/m/n")
    assert read_address(":memory:?model=/m") == (":memory:", "turngym", "/m")
    assert read_address(":memory:") == (":memory:", "turngym", "")


def test_a_long_query_costs_no_list_of_all_its_words() -> None:
    query = "a b " * 200_000
    tracemalloc.start()
    try:
        assert query_words(query) == ["b"]
        assert tracemalloc.get_traced_memory()[1] < 3 * len(query)
    finally:
        tracemalloc.stop()
