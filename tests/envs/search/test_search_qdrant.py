"""Qdrant through its client: its own search in this process, addresses, and servers that are down or wrong."""

import importlib.util
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from odd_server import Answer, Odd, odd_servers
from small_encoder import write_encoder

from turngym.envs.search.client import connect
from turngym.envs.search.documents import Document, content_hash
from turngym.envs.search.engines.qdrant import QdrantRetriever
from turngym.envs.search.env import SearchQA
from turngym.envs.search.retriever import make_retriever
from turngym.envs.search.retrying import SearchUnavailable
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError

DOCUMENTS = make_world(300, 0).documents
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("qdrant_client") is None, reason="qdrant-client is missing (make test-integration)"
    ),
    pytest.mark.integration,
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("model"), DOCUMENTS)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def odd() -> Iterator[Callable[[Answer], Odd]]:
    with odd_servers() as make:
        yield make


def test_it_finds_what_comparing_all_vectors_finds(model: Path) -> None:
    queries = [document.text for document in DOCUMENTS[:60]] + ["", "a city on the river", "\ud800"]
    there = make_retriever(DOCUMENTS, f"qdrant::memory:?model={model}")
    here = make_retriever(DOCUMENTS, f"dense:{model}")
    assert there.version == here.version
    for found, wanted in zip(there.search(queries, 5), here.search(queries, 5), strict=True):
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in wanted], abs=2e-5)
        assert [hit.document for hit in found] == [hit.document for hit in wanted]
    assert there.search(["x"], 0) == [[]] and there.search([], 3) == []


def test_a_corpus_is_streamed_in_and_named_when_it_is_whole(model: Path) -> None:
    remote = QdrantRetriever(f":memory:?model={model}")
    assert remote.version == ""

    def broken() -> Iterator[Document]:
        yield from DOCUMENTS[:280]
        raise OSError("the file ends")

    with pytest.raises(OSError, match="the file ends"):
        remote.fill(broken())
    assert remote.version == ""
    remote.fill(iter(DOCUMENTS))
    assert remote.version == content_hash(DOCUMENTS)
    assert remote._client.count(remote.collection).count == len(DOCUMENTS)
    with pytest.raises(ConfigError, match="is filled: name another one"):
        remote.fill(DOCUMENTS)


def test_points_of_another_program_are_no_passages(model: Path) -> None:
    remote = QdrantRetriever(f":memory:?model={model}")
    remote.fill(DOCUMENTS[:3])
    remote._client.clear_payload(remote.collection, [0, 1, 2])
    with pytest.raises(SearchUnavailable, match="without id, title and text"):
        remote.search(["river"], 1)


def test_an_environment_is_played_on_it(model: Path) -> None:
    env = SearchQA(size=300, engine=f"qdrant::memory:?model={model}", kind="1 hop", step_reward=0.6)
    env.reset(seed=0)
    observation, *_ = env.step(env.expert_action())
    assert "Doc 3" in observation and env.step(env.expert_action())[1] == 1.0


@pytest.mark.parametrize(("status", "tries"), [(500, 2), (404, 1), (401, 1), (200, 2)])
def test_a_server_that_fails_raises_and_is_no_empty_result(
    model: Path, odd: Callable[[Answer], Odd], status: int, tries: int
) -> None:
    place = odd(lambda number: (status, b"<html>"))
    remote = QdrantRetriever(f"{place.url}/wiki?model={model}", retries=1)
    with pytest.raises(SearchUnavailable):
        remote.search(["river"], 1)
    assert place.requests == tries


def test_a_server_that_is_slow_or_down_is_given_up(model: Path, odd: Callable[[Answer], Odd]) -> None:
    release = threading.Event()
    place = odd(lambda number: (200, b"{}") if release.wait(60) else None)
    with pytest.raises(SearchUnavailable, match="1 tries"):
        QdrantRetriever(f"{place.url}/wiki?model={model}", timeout=1.0, retries=0).search(["river"], 1)
    release.set()
    with pytest.raises(SearchUnavailable, match="2 tries"):
        QdrantRetriever(f"http://127.0.0.1:9/wiki?model={model}", retries=1).search(["river"], 1)


def test_an_environment_searches_a_collection_by_its_address(model: Path) -> None:
    remote = connect(f"qdrant+http://127.0.0.1:9/wiki?model={model}")
    assert isinstance(remote, QdrantRetriever) and remote.collection == "wiki"
    env = SearchQA(size=100, url=f"qdrant+http://127.0.0.1:9/wiki?model={model}")
    assert isinstance(env._retriever, QdrantRetriever)


def test_another_corpus_is_refused_and_not_replaced(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QdrantRetriever, "version", "another")
    with pytest.raises(ConfigError, match=r"holds another corpus \(another, wanted"):
        make_retriever(DOCUMENTS, f"qdrant::memory:?model={model}")
