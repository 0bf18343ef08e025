"""A pool of engines, with engines that count what is done to them, and with real processes."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from turngym.envs.vector.engine_pool import EnginePool, EnginesBusy, Lease
from turngym.errors import ConfigError
from turngym.system.processes import has_ended, own_memory_mib


class Program:
    """A process that reads until its standard input closes, as an engine has to."""

    numbers: Iterator[int] = itertools.count()

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.memory = 0.0

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def memory_mib(self) -> float:
        return self.memory

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()


@pytest.fixture
def pool() -> Iterator[EnginePool[Program]]:
    made = EnginePool(Program, seats=2, spares=1, max_engines=3, memory_limit_mib=100.0)
    yield made
    engines = made.engines
    made.close()
    assert not any(engine.is_alive() for engine in engines)


def test_seats_are_filled_before_another_engine_starts(pool: EnginePool[Program]) -> None:
    leases = [pool.lease() for _ in range(5)]
    assert [lease.engine for lease in leases] == [leases[0].engine] * 2 + [leases[2].engine] * 2 + [leases[4].engine]
    assert pool.counts == {"started": 3, "leased": 5}
    for lease in leases[2:4]:
        lease.release()
    leases += [pool.lease() for _ in range(3)]
    later = [lease.engine for lease in leases[5:]]
    assert later == [leases[4].engine, leases[2].engine, leases[2].engine], "the fullest first, so that others can end"
    with pytest.raises(EnginesBusy, match="all 3 engines are in use: close environments, or allow more"):
        pool.lease()


def test_an_engine_is_used_again_and_only_the_spares_are_kept(pool: EnginePool[Program]) -> None:
    first, second, third = (pool.lease() for _ in range(3))
    for lease in (first, second, third):
        lease.release()
        lease.release()
    assert pool.engines == (first.engine,) and pool.num_idle == 1
    assert not third.engine.is_alive()
    with pool.lease() as lease:
        assert lease.engine is first.engine
    assert pool.counts["started"] == 2


def test_one_that_has_ended_gets_no_more_leases(pool: EnginePool[Program]) -> None:
    lost = pool.lease()
    os.kill(lost.engine.process.pid, signal.SIGKILL)
    lost.engine.process.wait()
    found = pool.lease()
    assert found.engine is not lost.engine and found.engine.is_alive()
    lost.release()
    assert pool.counts == {"started": 2, "leased": 2, "lost": 1}


def test_one_that_has_grown_too_large_ends_with_its_last_lease(pool: EnginePool[Program]) -> None:
    first, second = pool.lease(), pool.lease()
    first.engine.memory = 101.0
    assert pool.memory_mib() == 101.0
    first.release()
    assert first.engine.is_alive()
    assert pool.lease().engine is not first.engine
    second.release()
    assert not first.engine.is_alive()
    assert pool.counts["retired"] == 1


def test_a_lease_that_was_forgotten_comes_back(pool: EnginePool[Program]) -> None:
    kept = [pool.lease() for _ in range(6)]
    engine = kept.pop().engine
    gc.collect()
    assert pool.lease().engine is engine


def test_threads_get_seats_of_engines_that_are_still_starting() -> None:
    gate = threading.Event()

    def start() -> Program:
        gate.wait()
        return Program()

    pool = EnginePool(start, seats=4)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(pool.lease) for _ in range(8)]
        gate.set()
        leases: list[Lease[Program]] = [each.result() for each in waiting]
    assert pool.counts == {"started": 2, "leased": 8}
    assert len({lease.engine.number for lease in leases}) == 2
    pool.close()


def test_the_error_of_a_start_reaches_everyone_and_the_pool_goes_on() -> None:
    failures = [OSError("no room"), OSError("no room")]

    def start() -> Program:
        if failures:
            raise failures.pop()
        return Program()

    pool = EnginePool(start, max_engines=1)
    for _ in range(2):
        with pytest.raises(OSError, match="no room"):
            pool.lease()
    with pool.lease() as lease:
        assert lease.engine.is_alive()
    pool.close()
    with pytest.raises(EnginesBusy, match="closed"):
        pool.lease()


def test_an_engine_that_is_ready_after_the_pool_was_closed_is_ended() -> None:
    begun, gate = threading.Event(), threading.Event()
    made: list[Program] = []

    def start() -> Program:
        begun.set()
        gate.wait()
        made.append(Program())
        return made[-1]

    pool = EnginePool(start, seats=2)
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(pool.lease) for _ in range(2)]
        begun.wait()
        pool.close()
        gate.set()
        for each in waiting:
            with pytest.raises(EnginesBusy, match="closed"):
                each.result()
    assert not pool.engines and [engine.is_alive() for engine in made] == [False]


def test_spares_start_ahead_and_are_replaced() -> None:
    failures = [OSError("not yet")]

    def start() -> Program:
        if failures:
            raise failures.pop()
        return Program()

    pool = EnginePool(start, spares=2, starts_ahead=True)
    assert pool.wait_until_warm() and pool.num_idle == 2
    taken = pool.take()
    assert pool.wait_until_warm()
    assert taken not in pool.engines and pool.counts["started"] == 3
    pool.close()
    assert taken.is_alive(), "what was taken for good is its user's"
    taken.close()


@pytest.mark.parametrize("options", [{"seats": 0}, {"spares": -1}, {"max_engines": 0}, {"seats": True}])
def test_limits_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(options))} of a pool of engines must be an integer of at least"):
        EnginePool(Program, **options)


def test_what_the_system_tells_of_a_process() -> None:
    engine = Program()
    if os.path.isdir("/proc"):
        assert own_memory_mib(engine.process.pid) > 0
        assert not has_ended(engine.process.pid)
    pid = engine.process.pid
    engine.close()
    assert own_memory_mib(pid) == 0.0
    if os.path.isdir("/proc"):
        assert has_ended(pid)
