"""A pool of servers: requests are shared out, failed servers are left out and return with the current weights."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from scripted_policy_servers import ScriptedServer, scripted_servers, token_of

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.completion import Completion
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.keeper import WRONG_WEIGHTS, Keeper
from turngym.agents.models.rollout_servers.members import Member, State
from turngym.agents.models.rollout_servers.pool import ServerPool
from turngym.agents.sampling import Sampling, seed_of, turn_uniforms
from turngym.errors import ModelError

QUICK = ServedConfig(poll=0.02, timeout=20.0, sync_timeout=20.0, patience=20.0, concurrency=8)
IMPATIENT = replace(QUICK, timeout=2.0)
"""For servers that do not answer; others have more time, on a busy machine as well."""
SAMPLING = Sampling(max_new_tokens=3)
DRAWS = [turn_uniforms(0, 0, number, 0, 3) for number in range(12)]
PROMPTS = [[1, 2, number] for number in range(12)]


@dataclass(frozen=True)
class Weights:
    """Weights of scripted servers: their name is all that they are."""

    label: str
    version: int = 0

    def deliver(self, server: PolicyClient) -> None:
        server.pause(20.0)
        server.call_workers("reload_weights", 20.0, weights_path=self.label)
        server.forget_prefixes(20.0)
        server.set_version(self.label, 20.0)
        server.resume(20.0)

    def check(self, server: PolicyClient) -> float:
        answer = server.generate([7], 1, SAMPLING, [0], 20.0)
        if answer.versions != (self.label,):
            raise CallFailed("stale", f"{answer.versions}")
        if answer.ids[0] != token_of([7], 1, self.label):
            raise CallFailed(WRONG_WEIGHTS, "it computes with other weights")
        return 0.25

    def sampled(self, number: int) -> Completion:
        """What they sample for one of the prompts."""
        seed = seed_of(DRAWS[number])
        ids = tuple(token_of(PROMPTS[number], seed + k, self.label) for k in range(3))
        return Completion(ids, (ANY,) * 3, version=self.version)


ANY: Any = pytest.approx(-3.912, abs=1e-3)


@contextmanager
def pool_of(servers: list[ScriptedServer], config: ServedConfig = QUICK, key: str = "") -> Iterator[ServerPool]:
    pool = ServerPool([PolicyClient(server.url, key) for server in servers], frozenset({0}), config)
    keeper = Keeper(pool)
    try:
        keeper.open()
        yield pool
    finally:
        pool.close()
        keeper.close()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def whole(pool: ServerPool, weights: Weights) -> None:
    """Assert that all prompts are completed by weights, in order."""
    assert pool.generate(PROMPTS, DRAWS, SAMPLING) == [weights.sampled(number) for number in range(len(PROMPTS))]


def test_requests_are_shared_out_and_come_back_in_order() -> None:
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        for server in servers:
            server.seconds = 0.5  # so long that a loaded machine starts the second request meanwhile
        pool.hand_over(Weights("first", 3))
        whole(pool, Weights("first", 3))
        assert all(len(server.prompts) == 2 + 6 and server.most_running > 1 for server in servers), "two are checks"
        metrics = pool.metrics()
        assert metrics.pop("time/weight_sync") > 0
        assert metrics == {
            "rollout/servers": 2.0,
            "rollout/server_faults": 0.0,
            "rollout/server_retries": 0.0,
            "rollout/server_stale": 0.0,
            "rollout/server_returns": 0.0,
            "rollout/server_restarts": 0.0,
            "rollout/weight_syncs": 1.0,
            "rollout/weight_gap": 0.25,
        }
        assert pool.metrics()["rollout/weight_syncs"] == 0


def test_token_ids_outside_the_vocabulary_are_a_malformed_answer() -> None:
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        pool.words = 1 + max(max(Weights("first").sampled(number).ids) for number in range(len(PROMPTS)))
        whole(pool, Weights("first"))
        pool.words -= 1
        with pytest.raises(ModelError, match="of a vocabulary of"):
            pool.generate(PROMPTS, DRAWS, SAMPLING)


def test_no_server_gets_more_requests_than_it_may_work_on() -> None:
    limited = ServedConfig(poll=0.02, concurrency=2)
    with scripted_servers(2) as servers, pool_of(servers, limited) as pool:
        for server in servers:
            server.seconds = 0.02
        pool.hand_over(Weights("first"))
        whole(pool, Weights("first"))
        assert max(server.most_running for server in servers) == 2


def test_a_conversation_stays_with_the_server_that_knows_it() -> None:
    prompts = [[number] * 200 for number in range(3)]
    with scripted_servers(3) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        answers = pool.generate(prompts, DRAWS[:3], SAMPLING)  # at once, so that they spread
        for _ in range(3):  # one at a time, so that no server is too busy for what it knows
            prompts = [[*prompt, *answer.ids, 5] for prompt, answer in zip(prompts, answers, strict=True)]
            answers = [pool.generate([prompts[k]], [DRAWS[k]], SAMPLING)[0] for k in range(3)]
        homes = [{prompt[0] for prompt in server.prompts if len(prompt) > 1} for server in servers]
        assert sum(map(len, homes)) == 3, "none was sampled by two servers"


@pytest.mark.parametrize("mode", ["error", "fails", "garbage", "silent", "stale", "mixed", "long"])
def test_a_failing_server_is_left_out_and_its_requests_go_to_the_other(mode: str) -> None:
    with scripted_servers(2) as servers, pool_of(servers, IMPATIENT if mode == "silent" else QUICK) as pool:
        pool.hand_over(Weights("first"))
        servers[0].mode = mode
        whole(pool, Weights("first"))
        counts = pool.counts
        assert counts.faults >= 1
        assert counts.retries >= 1 or mode in ("error", "silent"), "a check of its health may find these first"
        assert (counts.stale > 0) == (mode in ("stale", "mixed"))
        servers[0].mode = ""
        wait_for(lambda: pool.members[0].state is State.IN_USE)
        assert pool.counts.returns >= 1 and servers[0].label == "first"


def test_a_server_that_died_returns_with_the_weights_of_now() -> None:
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        servers[0].mode = "error"
        wait_for(lambda: pool.members[0].state is State.LOST)
        servers[0].weights = servers[0].label = "of the disk"  # what a restarted one has
        pool.hand_over(Weights("second", 1))
        whole(pool, Weights("second", 1))
        servers[0].mode = ""
        wait_for(lambda: pool.members[0].state is State.IN_USE)
        assert servers[0].weights == servers[0].label == "second"
        servers[1].mode = "error"
        whole(pool, Weights("second", 1))


@pytest.mark.parametrize("mode", ["deaf", "keeps"])
def test_a_server_that_does_not_take_the_weights_is_not_used(mode: str) -> None:
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        servers[0].mode = mode
        pool.hand_over(Weights("second"))
        before = len(servers[0].prompts)
        whole(pool, Weights("second"))
        assert all(prompt == (7,) for prompt in servers[0].prompts[before:]), "nothing but checks"
        assert pool.members[0].state is not State.IN_USE


def test_servers_that_never_take_the_weights_stop_the_run_with_the_reason() -> None:
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        for server in servers:
            server.mode = "deaf"
        pool.hand_over(Weights("second"))
        with pytest.raises(ModelError, match=r"no server can be used .*: weights: it computes with other weights"):
            pool.generate(PROMPTS, DRAWS, SAMPLING)
        assert all(member.state is State.GIVEN_UP for member in pool.members)


def test_requests_wait_for_the_only_server_to_return_and_not_forever() -> None:
    with scripted_servers(1) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        servers[0].mode = "error"
        healing = threading.Timer(0.5, lambda: setattr(servers[0], "mode", ""))
        healing.start()
        whole(pool, Weights("first"))
    impatient = ServedConfig(poll=0.02, patience=0.2)
    with scripted_servers(1) as servers, pool_of(servers, impatient) as pool:
        pool.hand_over(Weights("first"))
        servers[0].mode = "error"
        with pytest.raises(ModelError, match=r"no server can be used \(http://127.0.0.1:\d+: http_500"):
            whole(pool, Weights("first"))


def test_a_request_that_every_server_breaks_at_is_not_sent_forever() -> None:
    stubborn = ServedConfig(poll=0.02, retries=2)
    with scripted_servers(2) as servers, pool_of(servers, stubborn) as pool:
        pool.hand_over(Weights("first"))
        for server in servers:
            server.poison = PROMPTS[0]
        with pytest.raises(ModelError, match="a request failed 3 times, at last by the server"):
            pool.generate(PROMPTS[:1], DRAWS[:1], SAMPLING)


def test_weights_wait_for_completions_on_their_way() -> None:
    """No completion is of two weights, and nothing is sampled while they change."""
    with scripted_servers(2) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first", 1))
        for server in servers:
            server.seconds = 0.1
        asked = [len(server.prompts) for server in servers]
        found: list[Completion] = []
        player = threading.Thread(target=lambda: found.extend(pool.generate(PROMPTS, DRAWS, SAMPLING)))
        player.start()
        wait_for(lambda: all(len(server.prompts) > before for server, before in zip(servers, asked, strict=True)))
        pool.hand_over(Weights("second", 2))
        player.join()
        assert {completion.version for completion in found} <= {1, 2}
        assert all(
            each == Weights({1: "first", 2: "second"}[each.version], each.version).sampled(k)
            for k, each in enumerate(found)
        )
        assert pool.counts.stale == 0 and not any(server.sampled_while_paused for server in servers)


def test_redirects_are_refused_and_keys_are_sent() -> None:
    with scripted_servers(1, key="secret-of-16-bytes") as servers:
        with pool_of(servers, key="secret-of-16-bytes") as pool:
            pool.hand_over(Weights("first"))
            whole(pool, Weights("first"))
        with pytest.raises(ModelError, match=r"cannot be used \(http_401"), pool_of(servers):
            pass
        servers[0].mode = "moved"
        with pytest.raises(ModelError, match="http_302"), pool_of(servers):
            pass


def test_servers_that_are_not_there_are_named() -> None:
    pool = ServerPool([PolicyClient("http://127.0.0.1:9")], frozenset({0}), QUICK)
    with pytest.raises(ModelError, match=r"no server can be used \(http://127.0.0.1:9: connection"):
        Keeper(pool).open()
    pool.close()


def test_an_interrupt_gives_up_what_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_servers(1) as servers, pool_of(servers) as pool:
        pool.hand_over(Weights("first"))
        servers[0].seconds = 0.1
        work = iter(range(100))

        def interrupted(prompt: Sequence[int], tried: Sequence[Member], given_up: threading.Event) -> Member:
            if next(work) == 3:
                raise KeyboardInterrupt
            return original(prompt, tried, given_up)

        original = pool._take
        monkeypatch.setattr(pool, "_take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.generate(PROMPTS, DRAWS, SAMPLING)
        monkeypatch.undo()
        wait_for(lambda: not pool.members[0].in_flight)
        whole(pool, Weights("first"))
