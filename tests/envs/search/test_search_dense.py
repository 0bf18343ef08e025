"""Search by meaning, alone and fused with words: a tiny random model for the rules, the real MiniLM for the meaning."""

import importlib.util
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_encoder import write_encoder

from turngym.envs.search.documents import Document
from turngym.envs.search.embedding import encoder as encoders
from turngym.envs.search.embedding.encoder import Encoder, corpus_vectors
from turngym.envs.search.engines.hybrid import HybridRetriever, fuse
from turngym.envs.search.env import SearchQA
from turngym.envs.search.retriever import LocalRetriever, make_retriever
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError, MissingExtra

DOCUMENTS = make_world(120, 0).documents
FACTS = Path(__file__).parents[4] / "shared" / "data" / "search"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("model"), DOCUMENTS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "turngym" / "search"


@pytest.fixture(params=["dense", "hybrid"])
def retriever(request: pytest.FixtureRequest, model: Path) -> LocalRetriever:
    return make_retriever(DOCUMENTS, f"{request.param}:{model}")


def ids(hits: Sequence[object]) -> list[str]:
    return [hit.document.id for hit in hits]  # type: ignore[attr-defined]


def test_each_passage_is_nearest_to_itself(retriever: LocalRetriever) -> None:
    found = retriever.search([document.contents for document in DOCUMENTS], 1)
    assert [ids(hits) for hits in found] == [[document.id] for document in DOCUMENTS]


def test_top_k_is_a_prefix_scores_fall_and_nothing_is_found_twice(retriever: LocalRetriever) -> None:
    ten = retriever.search(["a city on the river"], 10)[0]
    assert len(set(ids(ten))) == 10 and [hit.score for hit in ten] == sorted((hit.score for hit in ten), reverse=True)
    for top_k in range(10):
        assert retriever.search(["a city on the river"], top_k)[0] == ten[:top_k]
    assert len(retriever.search(["a city on the river"], 500)[0]) == len(DOCUMENTS)


@pytest.mark.parametrize("query", ["", "  ", "?", "\ud800", "\x00", "word " * 5000])
def test_no_query_breaks_them(retriever: LocalRetriever, query: str) -> None:
    assert isinstance(retriever.search([query], 3)[0], list)
    assert retriever.search([], 3) == []


def test_batches_and_threads_give_what_single_searches_give(retriever: LocalRetriever) -> None:
    queries = [document.text for document in DOCUMENTS[:40]]
    single = [ids(retriever.search([query], 3)[0]) for query in queries]
    assert [ids(hits) for hits in retriever.search(queries, 3)] == single
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda query: ids(retriever.search([query], 3)[0]), queries)) == single


def test_equal_passages_come_in_the_order_of_the_corpus(model: Path) -> None:
    same = [Document(str(number), "Ardic", "the river") for number in range(8)]
    for engine in ("dense", "hybrid"):
        assert ids(make_retriever(same, f"{engine}:{model}").search(["river"], 5)[0]) == ["0", "1", "2", "3", "4"]


def test_vectors_have_length_1_and_the_first_token_is_taken_where_the_model_says_so(
    model: Path, tmp_path: Path
) -> None:
    mean = Encoder(str(model)).encode(["the river", "a city in the river"])
    assert np.linalg.norm(mean, axis=1) == pytest.approx(np.ones(2), abs=1e-5)
    first = Encoder(str(write_encoder(tmp_path / "first", DOCUMENTS, takes_first=True)))
    assert not np.allclose(first.encode(["the river"]), mean[:1], atol=1e-3)


def test_a_gpu_is_left_to_the_policy_unless_it_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert Encoder(str(model))._network.device.type == "cpu"
    monkeypatch.setenv("TURNGYM_ENCODER_DEVICE", "meta")
    assert Encoder(str(model))._network.device.type == "meta"


def test_what_fills_a_batch_up_does_not_change_a_vector(model: Path) -> None:
    encoder = Encoder(str(model))
    alone = encoder.encode(["the river"])
    assert np.allclose(encoder.encode(["the river", DOCUMENTS[0].contents, ""])[:1], alone, atol=1e-5)


def test_callers_at_once_share_batches_and_one_failure_is_not_everybodys(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, sizes = Encoder(str(model)), list[int]()
    original = encoder._batch

    def batch(texts: list[str]) -> encoders.Vectors:
        sizes.append(len(texts))
        if len(texts) > 1 and "bad" in texts:
            raise RuntimeError("no memory")
        return original(texts)

    monkeypatch.setattr(encoder, "_batch", batch)
    encoder._turn.acquire()
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(encoder.encode, [text]) for text in ("river", "city", "bad", "people", "works")]
        while len(encoder._waiting) < 5:
            pass
        encoder._turn.release()
        failed = [call.exception() for call in waiting]
    assert sizes[0] == 5 and sum(error is not None for error in failed) == 1


def test_vectors_of_a_corpus_are_kept_and_made_anew_where_the_file_is_damaged(
    model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder(str(model))
    made = np.array(corpus_vectors(DOCUMENTS, encoder))
    (path,) = cache.glob("*.npy")
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "encode", None)
        assert np.array_equal(corpus_vectors(DOCUMENTS, encoder), made)
    path.write_bytes(path.read_bytes()[:200])
    assert np.array_equal(corpus_vectors(DOCUMENTS, encoder), made)
    assert corpus_vectors(DOCUMENTS[:50], encoder).shape == (50, 32) and len(list(cache.glob("*.npy"))) == 2


def test_without_a_cache_vectors_are_made_all_the_same(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert corpus_vectors(DOCUMENTS[:5], Encoder(str(model))).shape == (5, 32)


rankings = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=15), max_size=4)


@given(rankings)
def test_fusion_ranks_by_the_sum_of_inverse_ranks(lists: list[list[int]]) -> None:
    found = fuse(lists)
    wanted = {
        place: sum(1 / (61 + one.index(place)) for one in lists if place in one) for one in lists for place in one
    }
    assert dict(found) == pytest.approx(wanted)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


def test_a_passage_that_both_find_comes_before_what_one_finds_first() -> None:
    assert [place for place, _ in fuse([[1, 2], [3, 2]])] == [2, 1, 3]


def test_an_environment_is_played_with_the_fused_engine(model: Path) -> None:
    env = SearchQA(size=120, engine=f"hybrid:{model}", kind="1 hop")
    env.reset(seed=0)
    assert "Doc 3" in env.step(env.expert_action())[0]
    assert isinstance(env._retriever, HybridRetriever)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_is_named_with_the_extra(model: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package}.*turngym\[dense\]"):
        make_retriever(DOCUMENTS, f"dense:{model}")


def test_a_missing_model_is_named_with_both_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        make_retriever(DOCUMENTS, f"dense:{tmp_path}")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ConfigError, match="no model that can be loaded"):
        make_retriever(DOCUMENTS, f"dense:{tmp_path}")
    monkeypatch.setattr(encoders, "PACKAGE", "no_such_package")
    with pytest.raises(MissingExtra, match=r"turngym\[dense\].*hybrid:FOLDER"):
        make_retriever(DOCUMENTS, "hybrid")


needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec(encoders.PACKAGE) is None, reason="MiniLM is not installed (make test-integration)"
)


@needs_minilm
@pytest.mark.integration
def test_minilm_finds_what_shares_no_word_with_the_query() -> None:
    told = {
        "Kitten": "A young cat that still drinks milk.",
        "Puppy": "A young dog that learns to bark.",
        "Volcano": "A mountain out of which molten rock flows.",
        "Airport": "Where planes land and depart.",
        "Bakery": "Fresh bread and rolls are sold early in the morning.",
    }
    documents = [Document(str(number), title, text) for number, (title, text) in enumerate(told.items())]
    asked = {"feline infants": "Kitten", "lava eruption": "Volcano", "catching flights": "Airport"}
    for engine in ("dense", "hybrid"):
        found = make_retriever(documents, engine).search(list(asked), 1)
        assert [hits[0].document.title for hits in found] == list(asked.values())
    assert not any(hits for hits in make_retriever(documents, "tantivy").search(list(asked), 1))


@needs_minilm
@pytest.mark.integration
@pytest.mark.skipif(not FACTS.is_dir(), reason="the prepared question sets are not here")
def test_minilm_and_words_together_find_no_less_than_each_alone_on_real_facts() -> None:
    env = SearchQA("strategyqa", str(FACTS), "facts", split="train", engine="fts5")
    questions = [question for question in (env.items or ())[:60] if question.gold]
    gold = {name for question in questions for name in question.gold}
    assert isinstance(env._retriever, LocalRetriever)
    documents = [document for place, document in enumerate(env._retriever.documents) if document.id in gold]
    documents += [document for document in env._retriever.documents[:300] if document.id not in gold]

    def recall(engine: str) -> float:
        found = make_retriever(documents, engine).search([question.text for question in questions], 3)
        shares = [
            len(set(ids(hits)) & set(question.gold)) / len(set(question.gold))
            for question, hits in zip(questions, found, strict=True)
        ]
        return sum(shares) / len(shares)

    figures = {engine: recall(engine) for engine in ("tantivy", "dense", "hybrid")}
    assert figures["hybrid"] >= min(figures["tantivy"], figures["dense"]) - 0.01 and figures["dense"] > 0.5, figures
