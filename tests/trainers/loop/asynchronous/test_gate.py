"""The gate and the pool: bounded age of samples, no deadlock, who waits, what is dropped."""

import random
import threading
import time

import pytest

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.loop.asynchronous.gate import Gate
from turngym.trainers.loop.asynchronous.pool import OnStale, Pool

SECONDS = 30.0
"""Far more than anything here takes; only a deadlock reaches it."""


def episode(number: int, *versions: int) -> Trajectory:
    return Trajectory(EpisodeSpec(number, 0, number), turns=[Turn("", "", "", policy_version=v) for v in versions])


class Players:
    """Twelve threads that play groups of random lengths, each turn with the version of its time."""

    def __init__(self, gate: Gate, pool: Pool) -> None:
        self.gate, self.pool = gate, pool
        self.number = 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.play, args=(seed,), daemon=True) for seed in range(12)]

    def play(self, seed: int) -> None:
        draw = random.Random(seed)
        while not self.gate.is_closed:
            with self.lock:
                number, self.number = self.number, self.number + 1
            while (version := self.pool.begin(number, 0.05)) is None:
                if self.gate.is_closed:
                    return
            versions = [version]
            for _ in range(draw.choice([1, 1, 1, 2, 12])):
                time.sleep(draw.random() * 0.002)
                versions.append(self.gate.version)
            self.pool.finish(number, [episode(number, *versions)])

    def __enter__(self) -> "Players":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.gate.close()
        for thread in self.threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in self.threads)


@pytest.mark.parametrize("on_stale", ["wait", "drop"])
@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_twelve_players_and_a_learner_never_exceed_the_age_and_never_stop(on_stale: OnStale, staleness: int) -> None:
    gate = Gate(batch=6, staleness=staleness)
    pool = Pool(gate, on_stale)
    seen: list[int] = []
    with Players(gate, pool):
        for iteration in range(40):
            batch = pool.take(6)
            assert len(batch) == 6 and gate.version == iteration
            assert all(iteration - group.oldest <= staleness for group in batch)
            assert all(group.oldest == group.version for group in batch), "the first turn is the oldest"
            assert gate.begun <= gate.limit
            seen += [group.number for group in batch]
            gate.updated()
    dropped = [group.number for group in pool.dropped]
    assert len(set(seen + dropped)) == len(seen) + len(dropped), "each group is trained on once or dropped once"
    assert gate.dropped == len(dropped) and not (on_stale == "wait" and dropped)


def test_no_more_groups_begin_than_the_run_trains_on() -> None:
    gate = Gate(batch=2, staleness=5, iterations=3)
    assert [gate.begin() for _ in range(7)] == [0] * 6 + [None]
    gate.add(2)
    assert [gate.begin() for _ in range(3)] == [0, 0, None], "an iteration that takes two batches needs one more"


def test_a_learner_waits_for_the_group_that_would_be_too_old_for_the_next_batch() -> None:
    gate = Gate(batch=1, staleness=1)
    pool = Pool(gate)
    for number in range(2):
        assert pool.begin(number) == 0
    pool.finish(1, [episode(1, 0)])
    assert [group.number for group in pool.take(1)] == [1], "the first one can still be trained on next"
    gate.updated()
    assert pool.begin(2) == 1
    pool.finish(2, [episode(2, 1)])
    found: list[int] = []
    learner = threading.Thread(target=lambda: found.extend(group.number for group in pool.take(1)), daemon=True)
    learner.start()
    learner.join(0.05)
    assert learner.is_alive() and not found
    pool.finish(0, [episode(0, 0, 1)])
    learner.join(SECONDS)
    assert found == [0]


def test_what_is_too_old_is_dropped_and_replaced() -> None:
    gate = Gate(batch=1, staleness=1)
    pool = Pool(gate, "drop")
    for number in range(2):
        assert pool.begin(number) == 0
    assert pool.begin(2) is None
    for _ in range(2):
        gate.updated()
    pool.finish(0, [episode(0, 0, 2)])
    assert pool.begin(2) == 2 and gate.begin() == 2 and gate.begin() is None
    pool.finish(2, [episode(2, 2)])
    assert [group.number for group in pool.take(1)] == [2]
    assert [group.number for group in pool.dropped] == [0] and gate.dropped == 1
    assert gate.begin() == 2, "another one begins in its place"


def test_an_error_of_the_player_reaches_the_learner_that_waits() -> None:
    gate = Gate(batch=1, staleness=0)
    pool = Pool(gate)
    threading.Timer(0.02, lambda: pool.fail(RuntimeError("the sampler fell over"))).start()
    with pytest.raises(RuntimeError, match="fell over"):
        pool.take(1)


def test_a_closed_gate_wakes_whoever_waits() -> None:
    gate = Gate(batch=1, staleness=0)
    gate.begin()
    threading.Timer(0.02, gate.close).start()
    assert gate.begin(SECONDS) is None


def test_a_gate_that_goes_on_counts_what_was_trained_and_what_is_being_played() -> None:
    gate = Gate(batch=4, staleness=1, version=10, begun=10 * 4 + 5)
    assert [gate.begin() for _ in range(4)] == [10, 10, 10, None], "two batches ahead, five groups of them begun"
