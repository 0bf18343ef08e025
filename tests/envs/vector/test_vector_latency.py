"""Latencies: quantiles of a histogram are those of the data, in bounded memory."""

import math
import random
import sys
from collections.abc import Callable

import pytest

from turngym.envs.vector import make_vec
from turngym.envs.vector.backends.latency import Histogram, Latencies


def exact(values: list[float], share: float) -> float:
    """The smallest value that at least this share of all do not exceed."""
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]


@pytest.mark.parametrize("shape", ["exponential", "lognormal", "two lumps", "constant", "one"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_are_those_of_the_data_to_two_and_a_half_percent(shape: str, share: float) -> None:
    generator = random.Random(shape)
    draw: Callable[[], float] = {
        "exponential": lambda: generator.expovariate(20),
        "lognormal": lambda: generator.lognormvariate(-9, 3),
        "two lumps": lambda: generator.choice([1e-5, 30.0]),
        "constant": lambda: 0.05,
        "one": lambda: 0.2,
    }[shape]
    values = [max(2e-7, draw()) for _ in range(1 if shape == "one" else 5000)]
    histogram = Histogram()
    for first in range(0, len(values), 700):
        histogram.add(values[first : first + 700])
    assert histogram.quantile(share) == pytest.approx(exact(values, share), rel=0.0251)
    assert histogram.quantile(share) <= histogram.longest == max(values)
    assert histogram.count == len(values) and histogram.total == pytest.approx(math.fsum(values))


def test_quantiles_never_fall_and_extremes_are_kept() -> None:
    histogram = Histogram()
    histogram.add([0.0, 1e-9, 1e-3, 1e9])
    quantiles = [histogram.quantile(share / 50) for share in range(51)]
    assert quantiles == sorted(quantiles)
    assert histogram.count == 4 and histogram.longest == 1e9


def test_nothing_counted_is_zero() -> None:
    histogram = Histogram()
    histogram.add([])
    assert histogram.summary() == {"count": 0, "p50": 0.0, "p90": 0.0, "p99": 0.0, "max": 0.0}


def test_memory_stays_bounded() -> None:
    latencies = Latencies()
    for _ in range(30_000):
        latencies.took("step", 0.001)
        latencies.took("reset", 0.002)
        latencies.took("call", 9.0)
    assert len(latencies.fresh_steps) <= 8193
    assert sys.getsizeof(latencies.fresh_steps) < 200_000
    summary = latencies.summary()
    assert summary["step_seconds"]["count"] == summary["reset_seconds"]["count"] == 30_000
    assert latencies.busy_seconds == pytest.approx(90.0)


def test_what_is_drained_here_and_absorbed_there_is_counted_once() -> None:
    here, there = Latencies(), Latencies()
    here.took("step", 0.5)
    here.took("reset", 0.25)
    there.absorb(here.drain())
    there.absorb(here.drain())
    there.absorb({})
    assert here.busy_seconds == 0.0 and there.busy_seconds == 0.75


@pytest.mark.parametrize("backend", ["sync", "thread", "asyncio", "process"])
def test_the_vector_reports_its_latencies(backend: str) -> None:
    with make_vec("toy_envs:toy/Faulty-v0", 2, backend=backend, num_workers=2, delay=0.02) as vector:
        vector.reset(seed=0)
        for _ in range(2):
            vector.step(["up", "down"])
        vector.send(["down", "down"])
        vector.recv(2)
        stats = vector.stats()
    steps, resets = stats["step_seconds"], stats["reset_seconds"]
    assert (steps["count"], resets["count"]) == (6, 2)
    assert steps["p50"] * 1.03 >= 0.02 and steps["p50"] <= steps["p90"] <= steps["p99"] <= steps["max"]
    assert stats["busy_seconds"] >= 0.12
    assert stats["waiting_seconds"] >= (0.12 if backend == "sync" else 0.06)
    if backend == "sync":
        assert stats["waiting_seconds"] == stats["busy_seconds"]


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_step_that_exceeds_its_limit_counts_with_the_limit(backend: str) -> None:
    with make_vec("toy_envs:toy/Faulty-v0", 1, backend=backend, step_timeout_seconds=1.5) as vector:
        vector.reset(seed=0)
        vector.step(["hang"])
        assert vector.stats()["step_seconds"]["max"] == 1.5
        assert vector.stats()["step_seconds"]["count"] == 1
