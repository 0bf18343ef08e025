"""A step keeps its time limit however many slots of one worker hang; the others lose nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import toy_envs
from vector_play import assert_faulted, assert_gone, play, without

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends import process
from turngym.envs.vector.backends.process import ProcessBackend

LIMIT, SLACK = 2.0, 8.0
"""Seconds; the slack is for processes to start on a busy machine. One hang after the other took 24 s and more."""
Make = Callable[..., TextVectorEnv]


class Tenacious(toy_envs.Faulty):
    """Hangs again when the episode is repeated in another process, once it is told to."""

    def apply_action(self, action: str) -> Any:
        if action.startswith("later ") and Path(action[6:]).exists():
            time.sleep(600)
        return super().apply_action(action)


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(count: int, kind: Callable[..., toy_envs.Faulty] = toy_envs.Faulty, **options: Any) -> TextVectorEnv:
        opened.append(
            make_vec(
                env_fns=[partial(kind, **options)] * count,
                backend="process",
                num_workers=1,
                autoreset_mode="disabled",
                step_timeout_seconds=LIMIT,
                reset_timeout_seconds=LIMIT,
            )
        )
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


def took(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_step_takes_no_longer_than_its_limit_however_many_hang(make: Make, count: int) -> None:
    vector = make(8)
    twin = make_vec(env_fns=[toy_envs.Faulty] * 8, autoreset_mode="disabled")
    for each in (vector, twin):
        each.reset(seed=4)
        each.step(["down"] * 8)
    hanging = range(1, 1 + count)
    seconds, found = took(lambda: vector.step(["hang" if slot in hanging else "up" for slot in range(8)]))
    whole = twin.step(["up"] * 8)[4].rows
    for slot, row in enumerate(found[4].rows):
        if slot in hanging:
            assert_faulted(row, f"timeout: step took longer than {LIMIT:g} s")
        else:
            assert repr(row) == repr(whole[slot])
    assert LIMIT <= seconds < LIMIT + SLACK
    assert vector.stats()["faults"] == {"timeout": count}
    others = [slot for slot in range(8) if slot not in hanging]
    assert vector.step(["up"] * len(others), others)[0] == twin.step(["up"] * len(others), others)[0]


def test_a_reset_keeps_its_limit_and_its_second_try_however_many_hang(make: Make, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    vector = make(5, marker=str(marker), reset_fault="hang")
    marker.write_text("x" * 5)
    seconds, _ = took(lambda: vector.reset(seed=0))
    assert seconds < 2 * LIMIT + SLACK
    assert vector.stats()["faults"] == {"timeout": 5}
    assert vector.step(["up"] * 5)[3].tolist().count(True) <= 2


def test_an_episode_that_hangs_when_it_is_repeated_is_a_fault_within_the_limit(make: Make, tmp_path: Path) -> None:
    marker = tmp_path / "later"
    vector = make(4, Tenacious)
    vector.reset(seed=0)
    for _ in range(3):
        vector.step([f"later {marker}"] * 3 + ["down"])
    marker.touch()
    seconds, found = took(lambda: vector.step(["kill", "down", "down", "down"]))
    rows = found[4].rows
    assert_faulted(rows[0], "worker died")
    assert_faulted(rows[1], f"timeout: repeating the episode took longer than {LIMIT:g} s")
    assert_faulted(rows[2], f"timeout: repeating the episode took longer than {LIMIT:g} s")
    assert rows[3]["fault"] == "" and seconds < LIMIT + SLACK


def test_slots_that_were_taken_out_of_their_worker_go_back_with_the_next_reset(make: Make) -> None:
    """Otherwise every hang would leave processes behind for good."""
    vector = make(4)
    assert isinstance(vector._backend, ProcessBackend)
    vector.reset(seed=0)
    vector.step(["hang", "up", "up", "up"])
    pids = vector._backend.pids()
    assert len(pids) == 4
    vector.reset(seed=1)
    assert len(vector._backend.pids()) == 1
    assert_gone(pids[1:])
    twin = make_vec(env_fns=[toy_envs.Faulty] * 4, autoreset_mode="disabled")
    assert without(play(vector, 2, {}), -1) == without(play(twin, 2, {}), -1)


def test_a_slow_slot_is_waited_for_by_none_of_the_others(make: Make) -> None:
    vector = make(3)
    vector.reset(seed=0)
    vector.send(["hang", "up", "up"])
    assert sorted(vector.recv(min_ready=2)[0]) == [1, 2] and vector.stats()["faults"] == {}
    assert vector.recv(min_ready=1)[0] == [0] and vector.stats()["faults"] == {"timeout": 1}


class Napping(toy_envs.Faulty):
    """Takes two seconds for an action, as a first reset does that starts an engine."""

    def apply_action(self, action: str) -> Any:
        if action == "nap":
            time.sleep(2)
        return super().apply_action("up")


@pytest.mark.parametrize(("count", "helpers"), [(4, 3), (20, 0)])
def test_slots_are_moved_only_where_that_takes_no_longer_than_to_wait(
    count: int, helpers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "num_processors", lambda: 1)
    with closing(make_vec(env_fns=[Napping] * count, backend="process", num_workers=1)) as vector:
        vector.reset(seed=0)
        vector.step(["nap", *["up"] * (count - 1)])
        assert isinstance(vector._backend, ProcessBackend)
        assert len(vector._backend.pids()) == 1 + helpers and vector.stats()["faults"] == {}


def test_closing_ends_what_hangs_in_workers_of_its_own(make: Make) -> None:
    vector = make(3)
    vector.reset(seed=0)
    vector.send(["hang"] * 3)
    vector.recv(min_ready=1, timeout_seconds=0.8)
    assert isinstance(vector._backend, ProcessBackend)
    pids = vector._backend.pids()
    assert len(pids) == 3
    seconds, _ = took(vector.close)
    assert_gone(pids)
    assert seconds < SLACK
