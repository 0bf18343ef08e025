"""Search over HTTP: the protocol, a server that is down, slow or wrong, and many clients at once."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from odd_server import Answer, Odd, odd_servers

import turngym
from turngym.envs.search.client import SearchClient
from turngym.envs.search.env import SearchQA
from turngym.envs.search.protocol import write
from turngym.envs.search.retriever import make_retriever
from turngym.envs.search.retrying import SearchUnavailable
from turngym.envs.search.server import BadRequest, SearchServer, read_request
from turngym.envs.search.world import make_world
from turngym.errors import ConfigError

LOCAL = make_retriever(make_world(300, 0).documents)


@pytest.fixture(scope="module")
def server() -> Iterator[SearchServer]:
    with SearchServer(LOCAL) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def odd() -> Iterator[Callable[[Answer], Odd]]:
    with odd_servers() as make:
        yield make


def test_a_server_finds_what_the_engine_behind_it_finds(server: SearchServer) -> None:
    client = SearchClient(server.url)
    queries = [document.text[:80] for document in LOCAL.documents[:30]]
    assert client.search(queries, 4) == LOCAL.search(queries, 4)
    assert client.version == LOCAL.version


def test_without_scores_documents_stand_alone_as_in_search_r1(server: SearchServer) -> None:
    answer = server.answer(json.dumps({"queries": ["born"], "topk": None}).encode())
    assert len(answer["result"][0]) == 3 and answer["result"][0][0].keys() == {"id", "contents"}
    scored = server.answer(json.dumps({"queries": ["born"], "topk": 2, "return_scores": True}).encode())
    assert [hit["document"] for hit in scored["result"][0]] == answer["result"][0][:2]


def test_episodes_on_a_server_equal_those_in_process_in_threads_too(server: SearchServer) -> None:
    def transcript(url: str, seed: int) -> list[Any]:
        env = SearchQA(size=300, url=url, step_reward=0.6)
        found: list[Any] = [env.reset(seed=seed)]
        while found[-1][-1]["success"] < 0:
            found.append(env.step(env.expert_action()))
        return found

    with ThreadPoolExecutor(16) as pool:
        served = list(pool.map(lambda seed: transcript(server.url, seed), range(48)))
    assert repr(served) == repr([transcript("", seed) for seed in range(48)])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"queries": "x"}',
        b'{"queries": [1]}',
        b'{"queries": ["x"], "topk": 0}',
        b'{"queries": ["x"], "topk": true}',
        b'{"queries": ["x"], "topk": 1000}',
        b"\xff",
        b"[" * 100_000,
        b'{"queries": [' + b'"",' * 2000,
        json.dumps({"queries": ["x"] * 1025}).encode(),
        json.dumps({"queries": ["x"] * 164, "topk": 100}).encode(),
    ],
)
def test_a_bad_request_says_what_is_wrong_and_the_server_goes_on(server: SearchServer, body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_request(body)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    connection.request("POST", "/retrieve", body)
    answer = connection.getresponse()
    assert answer.status == 400 and "error" in json.loads(answer.read())
    assert SearchClient(server.url).search(["born"], 1)[0]
    connection.close()


def test_other_paths_and_bodies_without_length_are_refused(server: SearchServer) -> None:
    for method, path, headers, status in (
        ("GET", "/", {}, 404),
        ("POST", "/other", {}, 404),
        ("POST", "/retrieve", {"Content-Length": str(10**9)}, 413),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
        connection.request(method, path, headers=headers)
        assert connection.getresponse().status == status
        connection.close()


def test_a_token_is_asked_for_and_needed_beyond_the_loopback() -> None:
    with pytest.raises(ConfigError, match="pass a token"):
        SearchServer(LOCAL, "0.0.0.0")
    with SearchServer(LOCAL, token="secret") as guarded:
        threading.Thread(target=guarded.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        assert SearchClient(guarded.url, token="secret").search(["born"], 1)[0]
        with pytest.raises(SearchUnavailable, match="401"):
            SearchClient(guarded.url, token="wrong").search(["born"], 1)
        guarded.shutdown()


def test_a_server_that_fails_for_a_while_is_tried_again(odd: Callable[..., Odd]) -> None:
    good = json.dumps({"result": [[{"id": "1", "contents": "T\ntext"}]]}).encode()
    answers = {1: None, 2: (503, b"busy"), 3: (200, b"<html>")}
    place = odd(lambda number: answers.get(number, (200, good)))
    hits = SearchClient(place.url).search(["x"], 3)
    assert [hit.document.title for hit in hits[0]] == ["T"] and place.requests == 4


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b'{"result": 3}',
        b'{"result": []}',
        b'{"result": [[{"id": 1}]]}',
        b'{"result": [[3]]}',
        b'{"result": [[],[]]}',
    ],
)
def test_a_server_that_talks_nonsense_raises_and_is_no_empty_result(odd: Callable[..., Odd], content: bytes) -> None:
    place = odd(lambda number: (200, content))
    with pytest.raises(SearchUnavailable):
        SearchClient(place.url).search(["x"], 3)


def test_a_server_that_is_down_faults_the_episode_and_no_other(odd: Callable[..., Odd], server: SearchServer) -> None:
    place = odd(lambda number: (500, b""))
    makers = [lambda: SearchQA(size=300, url=server.url), lambda: SearchQA(size=300, url=place.url)]
    with turngym.make_vec(env_fns=makers, backend="thread", autoreset_mode="disabled") as vector:
        vector.reset(seed=0)
        rows = vector.step([write("search", "Ardic", "tags")] * 2)[4].rows
    assert rows[0]["fault"] == "" and "SearchUnavailable" in rows[1]["fault"]


def test_a_slow_server_is_given_up_in_time(odd: Callable[..., Odd]) -> None:
    release = threading.Event()
    place = odd(lambda number: (200, b"{}") if release.wait(30) else None)
    with pytest.raises(SearchUnavailable, match="2 tries"):
        SearchClient(place.url, timeout=0.2, retries=1).search(["x"], 1)
    release.set()


@pytest.mark.parametrize("url", ["", "localhost", "ftp://x", "http://", "http://x:99999", "http://x/?q=1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        SearchClient(url)


def test_the_command_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "turngym", "serve-search", "--port", "0", "--size", "200"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        limit = threading.Timer(120, process.kill)  # bounds every wait below
        limit.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"(http://127\.0\.0\.1:\d+)/retrieve", line)
            assert found, line
            world = make_world(200, 0)
            hits = SearchClient(found[1]).search([world.documents[5].title], 3)[0]
            assert world.documents[5] in [hit.document for hit in hits]
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
        finally:
            process.kill()
            limit.cancel()
