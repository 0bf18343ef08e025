"""What a process has one of, and what the system tells of processes."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngym.envs.checks.leaks import holdings
from turngym.system.processes import OncePerProcess, children, descendants, has_ended


def test_threads_that_ask_at_once_get_the_same() -> None:
    made: list[object] = []
    barrier = threading.Barrier(8)

    def make() -> object:
        made.append(object())
        return made[-1]

    def ask() -> object:
        barrier.wait()
        return held.get()

    held = OncePerProcess(make)
    with ThreadPoolExecutor(8) as threads:
        found = {id(each.result()) for each in [threads.submit(ask) for _ in range(8)]}
    assert len(made) == 1 and found == {id(made[0])}


def test_what_was_taken_is_made_anew() -> None:
    held: OncePerProcess[list[int]] = OncePerProcess(list)
    assert held.take() is None
    first = held.get()
    assert held.take() is first and held.take() is None
    assert held.get() is not first


def test_another_process_makes_its_own_and_leaves_that_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    held: OncePerProcess[list[int]] = OncePerProcess(list)
    first = held.get()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert held.take() is None
    assert held.get() is not first


def test_what_fails_to_be_made_is_tried_again() -> None:
    failures = [OSError("not yet")]

    def make() -> str:
        if failures:
            raise failures.pop()
        return "made"

    held = OncePerProcess(make)
    with pytest.raises(OSError, match="not yet"):
        held.get()
    assert held.get() == "made"


def test_children_are_told_of_while_they_run() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()']); print(flush=True); input()"
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None and parent.stdout is not None
    parent.stdout.readline()
    family = descendants(parent.pid)
    assert family[0] == parent.pid and len(family) == 2 and not any(map(has_ended, family))
    parent.communicate()
    assert descendants(parent.pid) == [] and has_ended(parent.pid)


@pytest.fixture
def passing_threads() -> Iterator[None]:
    """Threads that come and go all the while."""
    is_over = threading.Event()

    def start_others() -> None:
        while not is_over.is_set():
            others = [threading.Thread(target=int) for _ in range(4)]
            for other in others:
                other.start()
            for other in others:
                other.join()

    starters = [threading.Thread(target=start_others) for _ in range(2)]
    for each in starters:
        each.start()
    yield
    is_over.set()
    for each in starters:
        each.join()


def test_a_child_is_found_while_threads_come_and_go(passing_threads: None) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        for _ in range(150):
            assert child.pid in children(os.getpid()) and child.pid in descendants(os.getpid())
            assert any(name.endswith(f"({child.pid})") for name in holdings()["processes"])
    finally:
        child.communicate()
