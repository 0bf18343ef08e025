"""First-ready stepping on every backend: who is ready is returned, nothing is lost, nobody waits in vain."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import toy_envs
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from vector_envs import Meeting, Picky, Waiting

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.errors import ConfigError

BACKENDS = ["sync", "thread", "asyncio", "process"]
Make = Callable[..., TextVectorEnv]


def picky(count: int, refuses: int) -> list[Any]:
    return [lambda slot=slot: Picky(slot == refuses) for slot in range(count)]


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(backend: str, env_fns: list[Any] | None = None, **options: Any) -> TextVectorEnv:
        workers = 2 if backend == "process" else None
        fns = env_fns or [toy_envs.Faulty] * 3
        opened.append(make_vec(env_fns=fns, backend=backend, num_workers=workers, **options))
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_recv_returns_what_was_sent_whatever_is_asked_for(make: Make, backend: str) -> None:
    vector = make(backend)
    with pytest.raises(NoAsyncCallError, match="call send"):
        vector.recv()
    vector.reset(seed=0)
    with pytest.raises(NoAsyncCallError):
        vector.recv(timeout_seconds=0.0)
    vector.send(["up"], [2])
    assert vector.recv(min_ready=99)[0] == [2]  # no more than are under way
    vector.send([], [])
    with pytest.raises(NoAsyncCallError):
        vector.recv()
    vector.send(["up", "down"], [1, 0])
    got: list[int] = []
    while len(got) < 2:
        slots, observations, *_ = vector.recv(min_ready=0)  # only looks
        assert len(observations) == len(slots)
        got += slots
    assert sorted(got) == [0, 1]
    for wrong in (-1, 1.5, True, None):
        vector.send(["up"], [0])
        with pytest.raises(ConfigError, match="min_ready must be a whole number of at least 0"):
            vector.recv(min_ready=wrong)  # type: ignore[arg-type]
        assert vector.recv()[0] == [0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_slot_under_way_takes_nothing_else(make: Make, backend: str) -> None:
    vector = make(backend)
    vector.reset(seed=0)
    vector.send(["up"], [1])
    forbidden: list[Callable[[], object]] = [
        lambda: vector.send(["up"], [1]),
        lambda: vector.step(["up", "up"], [0, 1]),
        lambda: vector.reset(seed=1),
        lambda: vector.call("expert_action"),
        lambda: vector.snapshot(),
    ]
    for busy in forbidden:
        with pytest.raises(AlreadyPendingCallError, match=r"slots \[1\]"):
            busy()
    assert vector.step(["up"], [2])[0][0].startswith("count 1")  # others may go on meanwhile
    slots, observations, *_ = vector.recv()
    assert slots == [1] and observations[0].startswith("count 1")
    assert vector.stats()["steps"] == 2


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_time_limit_returns_what_there_is(make: Make, backend: str) -> None:
    vector = make(backend, step_timeout_seconds=1.5)
    vector.reset(seed=0)
    vector.send(["hang"], [1])
    slots, observations, rewards, _, _, infos = vector.recv(timeout_seconds=0.02)
    assert slots == [] and observations == () and len(rewards) == 0 and infos.rows == []
    vector.send(["up"], [0])
    assert vector.recv(min_ready=1)[0] == [0]
    slots, *_, infos = vector.recv(min_ready=2)
    assert slots == [1] and infos.rows[0]["fault"].startswith("timeout")


@pytest.mark.parametrize("backend", ["thread", "asyncio"])
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_all_slots_overlap(make: Make, backend: str, is_wrapped: bool) -> None:
    """Every step waits until all others have begun: 64 of them end only if all are under way at once.

    A wrapper hides the coroutines, so that the plain step runs, which waits without giving way.
    """
    gathered: list[int] = []
    meeting: Callable[[], Meeting] = lambda: Meeting(gathered, 64)  # noqa: E731
    vector = make(backend, [(lambda: gymnasium.Wrapper(meeting())) if is_wrapped else meeting] * 64)
    vector.reset(seed=0)
    rows = vector.step(["up"] * 64)[4].rows
    assert all(row["fault"] == "" and row["anchor"] == "1 of 3" for row in rows)


@pytest.mark.parametrize("backend", ["thread", "asyncio"])
def test_num_workers_limits_how_many_threads_are_at_work(backend: str) -> None:
    """And one that hangs gives its turn back, so that the others need not wait for ever."""
    at_work: list[int] = []
    most: list[int] = []

    class Watched(toy_envs.Faulty):
        def step(self, action: str) -> Any:
            at_work.append(1)
            most.append(len(at_work))
            try:
                return super().step(action)
            finally:
                at_work.pop()

    with make_vec(env_fns=[lambda: Watched(delay=0.01)] * 6, backend=backend, num_workers=2) as vector:
        vector.reset(seed=0)
        vector.step(["up"] * 6)
        assert max(most) == 2
    at_work.clear()
    with make_vec(
        env_fns=[Watched] * 4, backend=backend, num_workers=1, step_timeout_seconds=1.5, autoreset_mode="disabled"
    ) as vector:
        for turn in range(2):
            vector.reset(seed=0)
            faults = [row["fault"][:7] for row in vector.step(["up", "hang", "up", "up"])[4].rows]
            assert faults == ["", "timeout", "", ""], turn


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_refused_reset_loses_no_answer_of_the_others(make: Make, backend: str, mode: str) -> None:
    vector, twin = make(backend, picky(3, 1), autoreset_mode=mode), make("sync", picky(3, 9), autoreset_mode=mode)
    got: dict[int, list[str]] = {0: [], 1: [], 2: []}
    want: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for each, seen in ((vector, got), (twin, want)):
        each.reset(seed=0)
        for _ in range(2):
            each.send(["up"] * 3)
            num_seen = 0
            while num_seen < 3:
                try:
                    slots, observations, *_ = each.recv(min_ready=3)
                except ConfigError as error:
                    assert "no second episode" in str(error) and each is vector
                    num_seen += 1
                    continue
                num_seen += len(slots)
                for slot, observation in zip(slots, observations, strict=True):
                    seen[slot].append(observation)
            if len(seen[1]) < len(seen[0]):  # the slot that refused has to be reset
                each.reset(options={"reset_mask": np.array([False, True, False])})
    assert got[0] == want[0] and got[2] == want[2]
    assert got[1] == (want[1][:1] if mode == "next_step" else [])[: len(got[1])] or mode == "same_step"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refused_reset_in_a_whole_step_leaves_the_others_in_order(make: Make, backend: str) -> None:
    """The step raises, but the other slots have taken theirs, are counted, and go on from there."""
    vector, twin = make(backend, picky(3, 1)), make("sync", picky(3, 9))
    for each in (vector, twin):
        each.reset(seed=0)
        each.step(["up"] * 3)  # ends every episode
    with pytest.raises(ConfigError, match="no second episode"):
        vector.step(["up"] * 3)
    begun = twin.step(["up"] * 3)[0]
    assert vector.stats()["resets"] == 5
    mask = np.array([False, True, False])
    observations, _ = vector.reset(seed=[0, 1, 2], options={"reset_mask": mask})
    assert (observations[0], observations[2]) == (begun[0], begun[2])
    assert vector.step(["up"] * 3)[0][0] == twin.step(["up"] * 3)[0][0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refused_reset_leaves_the_others_reset(make: Make, backend: str) -> None:
    vector, twin = make(backend), make("sync")
    options = {"slot_options": [None, {"tsk": 1}, None]}
    with pytest.raises(ConfigError, match="Did you mean 'task'"):
        vector.reset(seed=4, options=options)
    twin.reset(seed=4)
    assert vector.step(["up", "up"], [0, 2])[0] == twin.step(["up", "up"], [0, 2])[0]
    with pytest.raises(Exception, match=r"slot 1 before its episode has started"):
        vector.step(["up"], [1])


def test_a_coroutine_that_is_late_delivers_nothing(make: Make, tmp_path: Path) -> None:
    """The answer of a slot that was given up would be taken for that of the fresh one."""

    class Late(Waiting):
        async def async_step(self, action: str) -> Any:
            import asyncio

            if action == "late":
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    return "late", 99.0, False, False, {}
            return await super().async_step(action)

    vector = make("asyncio", [Late], step_timeout_seconds=1.5)
    vector.reset(seed=0)
    assert vector.step(["late"])[4].rows[0]["fault"].startswith("timeout")
    for _ in range(3):
        assert vector.step(["up"])[1][0] != 99.0
    assert vector.stats()["abandoned"] == 0
