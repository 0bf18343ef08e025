"""Environments that raise what ends a program, or give what no one can use: faults of their slot on every backend."""

import itertools
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hostile_envs import INFOS, RAISES, REWARDS, Hostile, HostileWaiting
from vector_play import assert_faulted

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.errors import TurngymError, error_text
from turngym.types import INFO_TYPES

BACKENDS = ("sync", "thread", "asyncio", "coroutines", "process")
Make = Callable[..., TextVectorEnv]
ENDINGS = ("silent", "leave", "generator", "cancelled")
TOLD = {
    "silent": "exception: Silent: (its message cannot be read)",
    "deadly": "exception: Deadly: (its message cannot be read)",
    "huge": "exception: ValueError: xxxx",
    "surrogate": "exception: ValueError: half ? a letter",
    "leave": "exception: SystemExit: 3",
    "generator": "exception: GeneratorExit: end",
    "cancelled": "exception: CancelledError",
    "base": "exception: BaseException: a base",
}


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(backend: str, *hosts: dict[str, Any]) -> TextVectorEnv:
        kind = HostileWaiting if backend == "coroutines" else Hostile
        opened.append(
            make_vec(
                env_fns=[partial(kind, **host) for host in hosts],
                backend="asyncio" if backend == "coroutines" else backend,
                autoreset_mode="disabled",
                num_workers=1 if backend == "process" else None,
            )
        )
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_an_environment_raises_or_returns_is_a_fault_of_its_slot(make: Make, backend: str) -> None:
    """Its text may raise, be endless or no Unicode; the slot beside it goes on as if nothing had happened."""
    vector = make(backend, {}, {})
    expected = {
        **TOLD,
        **{name: "exception: " for name in REWARDS},
        **{name: f"exception: TypeError: info['{key}'] must be " for name, (key, _) in INFOS.items()},
        "ends": "exception: TypeError: terminated must be a bool, got 'no'",
    }
    for action, fault in expected.items():
        vector.reset(seed=3)
        _, rewards, _, truncations, infos = vector.step(["up", action])
        assert truncations.tolist() == [False, True] and rewards[1] == 0, action
        assert infos.rows[0]["fault"] == "" and infos.rows[0]["anchor"] == "1 of 3"
        assert_faulted(infos.rows[1], fault)
        told = infos.rows[1]["fault"]
        assert len(told) <= 320 and told.isprintable() and told.encode()
    assert sum(vector.stats()["faults"].values()) == len(expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_fault_of_a_reward_says_what_was_given(make: Make, backend: str) -> None:
    vector = make(backend, {})
    faults = []
    for action in ("nan", "text"):
        vector.reset(seed=0)
        faults.append(vector.step([action])[4].rows[0]["fault"])
    assert faults == [
        "exception: NotFinite: got the reward nan, which is not finite",
        "exception: TypeError: the reward must be a number, got '1.5'",
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_info_that_raises_when_it_is_read_becomes_a_plain_dict(make: Make, backend: str) -> None:
    vector = make(backend, {})
    vector.reset(seed=0)
    (row,) = vector.step(["lazy"])[4].rows
    assert {key: type(row[key]) for key in row} == INFO_TYPES and row["anchor"] == "0 of 3"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reset_that_raises_anything_costs_its_own_episode(make: Make, backend: str) -> None:
    vector = make(backend, {}, {"where": "reset info"}, *({"where": "reset", "what": what} for what in ENDINGS))
    for _ in range(2):
        _, infos = vector.reset(seed=0)
        sound, odd, *raising = infos.rows
        assert sound["fault"] == ""
        assert odd["fault"] == "exception: TypeError: info['score'] must be a finite number, got 'high'"
        for what, row in zip(ENDINGS, raising, strict=True):
            assert row["fault"].startswith(TOLD[what]) and row["success"] == -1
        assert vector.step(["up"] * 6)[3].tolist() == [False] + [True] * 5
    assert sum(vector.stats()["faults"].values()) == 20


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_that_raise_anything_reach_the_caller_as_errors(make: Make, backend: str) -> None:
    """Nothing that ends a program or a task comes out of a vector, and the episodes go on."""
    vector = make(backend, {}, *({"what": what} for what in ENDINGS))
    for (slot, what), where in itertools.product(enumerate(ENDINGS, 1), ("snapshot", "render", "restore")):
        vector.reset(seed=0)
        vector.step(["up"] * 5)
        saved = vector.snapshot([0])
        vector.set_attr("where", [where if number == slot else "" for number in range(5)])
        with pytest.raises(Exception) as caught:
            vector.restore(saved, [slot]) if where == "restore" else getattr(vector, where)()
        assert what == "silent" or isinstance(caught.value, TurngymError)
        assert error_text(caught.value)
        if where != "restore":
            assert [row["anchor"] for row in vector.step(["up"] * 5)[4].rows] == ["2 of 3"] * 5
        vector.set_attr("where", "")
    vector.set_attr("where", "close")
    vector.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_maker_that_tries_to_end_the_program_is_an_error(backend: str) -> None:
    def maker() -> Hostile:
        raise SystemExit(4)

    with pytest.raises(TurngymError, match="SystemExit: 4"):
        make_vec(env_fns=[maker], backend="asyncio" if backend == "coroutines" else backend)


def test_an_environment_that_closes_its_descriptors_loses_its_episode_alone(make: Make) -> None:
    """The worker cannot answer any more, and nobody sees which of its slots did that until they are tried apart."""
    vector = make("process", {}, {}, {})
    twin = make("sync", {}, {}, {})
    for seed in range(2):
        for each in (vector, twin):
            each.reset(seed=seed)
            each.step(["up"] * 3)
        whole = twin.step(["up"] * 3)[4].rows
        rows = vector.step(["up", "descriptors", "up"])[4].rows
        assert_faulted(rows[1], "worker died")
        assert repr([rows[0], rows[2]]) == repr([whole[0], whole[2]])
    assert vector.stats()["faults"] == {"worker died": 2} and vector.stats()["workers_replaced"] >= 2


def test_what_a_signal_handler_raises_is_no_fault(make: Make) -> None:
    """A job scheduler's SIGTERM must end the program also where it arrives in the middle of a step."""

    def leave(*_: object) -> None:
        raise SystemExit(5)

    class Signalled(Hostile):
        def step(self, action: str) -> Any:
            signal.raise_signal(signal.SIGTERM)
            return super().step(action)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        vector = make_vec(env_fns=[Signalled])
        vector.reset(seed=0)
        with pytest.raises(SystemExit):
            vector.step(["up"])
    finally:
        signal.signal(signal.SIGTERM, before)


def test_every_raise_has_its_text() -> None:
    assert TOLD.keys() == RAISES.keys()
