"""Ctrl-C in the middle of a step leaves a vector that can be used."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from vector_envs import Interrupting

from turngym.envs.vector import make_vec
from turngym.envs.vector.backends.base import HeldInterrupts
from turngym.errors import EpisodeOver


@contextmanager
def handler(function: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, function)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("backend", ["sync", "thread", "asyncio", "process"])
def test_an_interrupted_step_leaves_a_vector_that_can_be_reset(backend: str) -> None:
    pid = os.getpid()
    maker = lambda: Interrupting(pid)  # noqa: E731
    with make_vec(env_fns=[maker] * 3, backend=backend) as vector, handler(signal.default_int_handler):
        twin = make_vec(env_fns=[Interrupting] * 3)
        vector.reset(seed=1)
        with pytest.raises(KeyboardInterrupt):
            vector.step(["up", "interrupt", "up"])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(EpisodeOver, match="slot 0 before its episode has started"):
            vector.step(["up"] * 3)
        assert repr(vector.reset(seed=5)) == repr(twin.reset(seed=5))
        assert repr(vector.step(["up"] * 3)) == repr(twin.step(["up"] * 3))
        assert vector.stats()["faults"] == {} and vector.stats()["workers_replaced"] == 0


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_an_interrupted_recv_loses_nothing(backend: str) -> None:
    maker = lambda: Interrupting(delay=0.2)  # noqa: E731
    with make_vec(env_fns=[maker] * 2, backend=backend) as vector, handler(signal.default_int_handler):
        vector.reset(seed=1)
        vector.send(["up", "up"])
        timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            vector.recv(2)
            timer.join()  # on a machine that is busy the answers may be there before the interrupt is
            pytest.skip("the interrupt came late")
        slots, observations, *_ = vector.recv(2)
        assert sorted(slots) == [0, 1] and all(text.startswith("count 1") for text in observations)


def test_a_handler_that_does_not_raise_lets_the_step_end() -> None:
    """A trainer's first Ctrl-C only asks it to stop after the iteration."""
    noted: list[int] = []
    pid = os.getpid()
    maker = lambda: Interrupting(pid)  # noqa: E731
    with make_vec(env_fns=[maker] * 2, backend="thread") as vector, handler(lambda number, frame: noted.append(number)):
        vector.reset(seed=0)
        assert vector.step(["interrupt", "up"])[0][1].startswith("count 1")
    assert noted == [signal.SIGINT]


def test_an_interrupt_is_held_back_and_handed_on_once() -> None:
    with handler(signal.default_int_handler):
        reached = []
        with pytest.raises(KeyboardInterrupt), HeldInterrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            reached.append("held")
            interrupts.check()
        with pytest.raises(KeyboardInterrupt), HeldInterrupts():
            signal.raise_signal(signal.SIGINT)
            reached.append("until the end")
        with pytest.raises(ValueError, match="the first error"), HeldInterrupts():
            raise ValueError("the first error")
        assert reached == ["held", "until the end"]
        with HeldInterrupts() as interrupts:
            interrupts.check()
    with handler(signal.SIG_IGN), HeldInterrupts():
        signal.raise_signal(signal.SIGINT)


def test_other_threads_leave_the_handlers_alone() -> None:
    found: list[Any] = []

    def look() -> None:
        with HeldInterrupts() as interrupts:
            found.append(signal.getsignal(signal.SIGINT))
            interrupts.check()

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [before]
