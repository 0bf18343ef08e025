"""Vectors: lost answers, waits that never end, leaked descriptors and threads."""

import gc
import os
import signal
import threading
import time
from collections import Counter as Count
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_envs
from gymnasium.vector import AutoresetMode
from vector_envs import Waiting
from vector_play import assert_faulted, play, without

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.process import ProcessBackend
from turngym.errors import ConfigError, TurngymError

LIMIT = 1.5
TIMEOUT = f"timeout: step took longer than {LIMIT} s"
BACKENDS = ["sync", "thread", "asyncio", "process"]
Make = Callable[..., TextVectorEnv]


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("thread", "process"):
        monkeypatch.setattr(f"turngym.envs.vector.backends.{module}._CLOSE_SECONDS", 0.3)


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(backend: str, env_fns: list[Any], **options: Any) -> TextVectorEnv:
        limits = {"step_timeout_seconds": LIMIT, "reset_timeout_seconds": LIMIT}
        workers = {"num_workers": 1} if backend == "process" else {}
        opened.append(make_vec(env_fns=env_fns, backend=backend, **(limits | workers | options)))
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


def kill_worker(vector: TextVectorEnv) -> None:
    assert isinstance(vector._backend, ProcessBackend)
    os.kill(vector._backend.pids()[0], signal.SIGKILL)


# Cells of the fault table that no other test tries out.

IN_COROUTINES = {"raise": "exception: ValueError: no such door", "hang": TIMEOUT, "exit": "exception: SystemExit: 3"}


@pytest.mark.parametrize("kind", IN_COROUTINES)
def test_coroutines_break_as_plain_methods_do(make: Make, kind: str) -> None:
    vector = make("asyncio", [Waiting] * 3)
    broken = play(vector, 6, {(1, 1): kind})
    assert without(broken, 1) == without(play(make("sync", [toy_envs.Faulty] * 3), 6, {}), 1)
    assert_faulted(broken[2][4][1], IN_COROUTINES[kind])
    stats = vector.stats()
    assert list(stats["faults"].values()) == [1] and stats["abandoned"] == 0  # a coroutine can be cancelled


@pytest.mark.parametrize("kind", IN_COROUTINES)
def test_a_coroutine_that_breaks_in_a_reset_is_tried_once_more(make: Make, tmp_path: Path, kind: str) -> None:
    marker = tmp_path / "marker"
    vector = make("asyncio", [lambda: Waiting(marker=str(marker), reset_fault=kind)] * 2)
    healthy = make("sync", [toy_envs.Faulty] * 2).reset(seed=3)
    marker.write_text("x")
    assert repr(vector.reset(seed=3)) == repr(healthy)
    marker.write_text("xx")
    observations, _ = vector.reset(seed=3, options={"reset_mask": np.array([True, False])})
    rows = vector.step(["up", "up"])[4].rows
    assert observations[0] == "" and rows[0]["fault"] and rows[1]["fault"] == ""
    assert sum(vector.stats()["faults"].values()) == 3
    assert repr(vector.reset(seed=3)) == repr(healthy)


@pytest.mark.parametrize("kind", ["quit", "eat"])
def test_a_reset_that_ends_its_process_or_eats_memory_is_tried_once_more(make: Make, tmp_path: Path, kind: str) -> None:
    marker = tmp_path / "marker"
    fns = [lambda: toy_envs.Faulty(marker=str(marker), reset_fault=kind)] * 2
    vector = make("process", fns, memory_limit_mib=200 if kind == "eat" else None)
    healthy = make("sync", [toy_envs.Faulty] * 2).reset(seed=3)
    marker.write_text("x")
    assert repr(vector.reset(seed=3)) == repr(healthy)
    assert sum(vector.stats()["faults"].values()) == 1


def test_a_memory_limit_is_refused_where_it_would_hit_the_program_itself() -> None:
    for backend in ("sync", "thread", "asyncio"):
        with pytest.raises(ConfigError, match='backend="process"'):
            make_vec(env_fns=[toy_envs.Counter], backend=backend, memory_limit_mib=200)


@pytest.mark.parametrize(("backend", "kind"), [("thread", "exit"), ("asyncio", "exit"), ("process", "kill")])
def test_a_death_in_a_snapshot_or_restore_raises_and_the_episodes_go_on(make: Make, backend: str, kind: str) -> None:
    class Fragile(toy_envs.Faulty):
        fragile = ""

        def snapshot(self) -> bytes:
            toy_envs.breakdown(kind if self.fragile == "snapshot" else "")
            return super().snapshot()

        def restore(self, snapshot: bytes) -> Any:
            toy_envs.breakdown(kind if self.fragile == "restore" else "")
            return super().restore(snapshot)

    fault = "exception: SystemExit: 3" if kind == "exit" else "{} .* of slot 1 broke its worker"
    vector, twin = make(backend, [Fragile] * 3), make("sync", [toy_envs.Faulty] * 3)
    for each in (vector, twin):
        each.reset(seed=1)
        each.step(["up"] * 3)
    saved = vector.snapshot()
    for method in ("snapshot", "restore"):
        vector.set_attr("fragile", ["", method, ""])
        with pytest.raises(TurngymError, match=fault.format(method)):
            vector.snapshot() if method == "snapshot" else vector.restore([saved[1]], indices=[1])
        vector.set_attr("fragile", "")
    assert repr(vector.step(["up"] * 3)) == repr(twin.step(["up"] * 3))
    assert vector.stats()["faults"] == {}


# Waits that never ended.


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_turn_after_an_interrupted_call_is_answered(backend: str) -> None:
    """The answer of the call that nobody waits for any more was taken for that of the turn."""

    class Slow(toy_envs.Counter):
        def wait(self, seconds: float) -> None:
            time.sleep(seconds)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with make_vec(env_fns=[Slow] * 2, backend=backend) as vector:
            for pause in (0.0, 0.4):  # the turn is sent before and after the call has ended
                vector.reset(seed=0)
                threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
                with pytest.raises(KeyboardInterrupt):
                    vector.call("wait", 0.35)
                time.sleep(pause)
                vector.send(["up", "up"])
                time.sleep(0.4)  # everything is there before anybody looks
                slots, observations, *_ = vector.recv(2, timeout_seconds=20)
                assert sorted(slots) == [0, 1] and all(text.startswith("count 1") for text in observations)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_answer_does_not_wait_for_a_slow_slot_of_the_same_worker(make: Make) -> None:
    """It lay in the worker until the slot that hangs was ended with it, and was then found out once more."""

    class Slow(toy_envs.Faulty):
        def step(self, action: str) -> Any:
            time.sleep(0.02)
            return super().step(action)

    vector = make("process", [toy_envs.Faulty, Slow], step_timeout_seconds=20.0)
    vector.reset(seed=0)
    vector.step(["up", "up"])
    vector.send(["up", "hang"])
    slots, observations, *_ = vector.recv(timeout_seconds=15)
    assert slots == [0] and observations[0].startswith("count 2")
    assert vector.stats()["workers_replaced"] == 0


def test_a_worker_that_was_stopped_is_replaced_and_costs_no_episode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not begin what it is told, so that no limit of an operation is about it."""
    monkeypatch.setattr("turngym.envs.vector.backends.process._SILENT_SECONDS", 0.5)
    vector, twin = make("process", [toy_envs.Faulty] * 2), make("sync", [toy_envs.Faulty] * 2)
    for each in (vector, twin):
        each.reset(seed=1)
        each.step(["up"] * 2)
    assert isinstance(vector._backend, ProcessBackend)
    os.kill(vector._backend.pids()[0], signal.SIGSTOP)
    assert repr(vector.step(["up"] * 2)) == repr(twin.step(["up"] * 2))
    assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] >= 1


def test_closing_does_not_wait_for_turns_that_have_not_begun(make: Make) -> None:
    begun: list[int] = []

    class Noting(toy_envs.Faulty):
        def step(self, action: str) -> Any:
            begun.append(1)
            return super().step(action)

    vector = make("thread", [lambda: Noting(delay=0.1)] * 6, num_workers=1)
    vector.reset(seed=0)
    vector.send(["up"] * 6)
    vector.close()
    assert len(begun) <= 2 and vector._backend.abandoned == 0


# What got lost.


def test_what_was_set_before_the_first_episode_outlives_the_worker(make: Make) -> None:
    vector = make("process", [toy_envs.Faulty] * 2)
    for goal in (7, 9):
        vector.set_attr("goal", goal)
        kill_worker(vector)
        assert vector.get_attr("goal") == (goal, goal)
    kill_worker(vector)
    vector.reset()
    assert vector.get_attr("goal") == (9, 9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_slot_gets_its_turns_first_ready_with_episodes_that_begin_at_once(make: Make, backend: str) -> None:
    """Each slot has an end in every third answer, none is starved, and each slot's episodes are those of lock-step."""
    mode, count, answers = AutoresetMode.SAME_STEP, 4, 80
    vector = make(backend, [toy_envs.Faulty] * count, autoreset_mode=mode)
    twin = make("sync", [toy_envs.Faulty] * count, autoreset_mode=mode)
    got: dict[int, list[str]] = {slot: [] for slot in range(count)}
    vector.reset(seed=2)
    vector.send(["up"] * count)
    under_way, seen = count, 0
    longest_wait: Count[int] = Count()
    while seen < answers:
        slots, observations, rewards, terminations, _, infos = vector.recv(min_ready=2)
        assert len(slots) >= min(2, under_way)
        for i, slot in enumerate(slots):
            got[slot].append(repr((observations[i], rewards[i], bool(terminations[i]), infos.rows[i])))
            longest_wait[slot] = 0
        for slot in set(range(count)) - set(slots):
            longest_wait[slot] += 1
            assert longest_wait[slot] < 40
        seen += len(slots)
        vector.send(["up"] * len(slots), slots)
    vector.recv(min_ready=count)
    twin.reset(seed=2)
    for turn in range(max(map(len, got.values()))):
        observations, rewards, terminations, _, infos = twin.step(["up"] * count)
        for slot in range(count):
            if turn < len(got[slot]):
                shown = repr((observations[slot], rewards[slot], bool(terminations[slot]), infos.rows[slot]))
                assert got[slot][turn] == shown
    assert vector.stats()["steps"] == seen + count == sum(map(len, got.values())) + count


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_killed_worker_loses_no_answer_of_first_ready_stepping(make: Make, mode: AutoresetMode) -> None:
    """Five slots in one process, of which one ends it again and again while the others are under way."""
    vector, twin = (make(b, [toy_envs.Faulty] * 5, autoreset_mode=mode) for b in ("process", "sync"))
    turns = 2 if mode is AutoresetMode.DISABLED else 9
    want, got = play(twin, turns, {}), [vector.reset(seed=4)[0]]
    for turn in range(turns):
        actions = ["down" if (turn + slot) % 4 == 3 else "up" for slot in range(5)]
        if turn in (1, 5):
            actions[2] = "kill"
        vector.send(actions)
        slots, observations, rewards, terminations, truncations, infos = vector.recv(min_ready=5)
        order = [slots.index(slot) for slot in range(5)]
        columns = (observations, rewards.tolist(), terminations.tolist(), truncations.tolist(), infos.rows)
        got.append(tuple([column[i] for i in order] for column in columns))
    assert without(got, 2) == without(want, 2)
    assert vector.stats()["workers_replaced"] == (1 if mode is AutoresetMode.DISABLED else 2)


# What is left behind.


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_vectors_and_their_faults_leave_neither_descriptors_nor_threads(make: Make, backend: str) -> None:
    kind = Waiting if backend == "asyncio" else toy_envs.Faulty
    fault = "kill" if backend == "process" else "exit"

    def use() -> None:
        vector = make(backend, [kind] * 3, autoreset_mode="disabled")
        for seed in range(3):
            vector.reset(seed=seed)
            vector.step(["up", fault, "up"])
        vector.close()

    def settled() -> tuple[int, int]:
        gc.collect()
        deadline = time.monotonic() + 10
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        return descriptors(), threading.active_count()

    threads = threading.active_count()
    use()
    before = settled()
    for _ in range(2):
        use()
    assert settled() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_counts_are_right_whatever_breaks(make: Make, backend: str) -> None:
    fault = {"sync": "raise", "process": "kill"}.get(backend, "hang")
    vector = make(backend, [toy_envs.Faulty] * 3)
    vector.reset(seed=0)
    for turn in range(4):  # the goal is reached in turn 3; slot 1 breaks in turn 2 and begins anew in turn 3
        vector.step(["up", fault if turn == 1 else "up", "up"])
    stats = vector.stats()
    assert stats["steps"] == 4 + 4 + 4 - 3 and stats["resets"] == 6
    assert list(stats["faults"].values()) == [1]
    assert stats["workers_replaced"] == (backend != "sync")
    assert stats["abandoned"] == (fault == "hang")
    counted = stats["step_seconds"]["count"]
    assert counted >= stats["steps"] - (fault == "kill")  # nobody knows how long a killed turn took
    assert stats["busy_seconds"] >= (LIMIT if fault == "hang" else 0.0)
