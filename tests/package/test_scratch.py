"""Temporary folders and programs of processes that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from turngym.system.processes import has_ended
from turngym.system.scratch import remove_dead, scratch_root

MAKER = """
import sys, time
from turngym.system.processes import has_ended
from turngym.system.scratch import scratch_root
folder = scratch_root() / "deep"
folder.mkdir()
(folder / "file").write_text("x")
print(folder.parent, flush=True)
sys.stdin.read()
"""
PROGRAM = """
import os, time
def child(*leave):
    if not os.fork():
        for step in leave:
            step()
        print(os.getpid(), flush=True)
        os.execve("/bin/sleep", ["sleep", "600"], {} if leave == (os.setsid,) else os.environ)
child()  # stays in the group
child(os.setsid)  # leaves the group, and drops its variables
child(lambda: os.fork() and os._exit(0), os.setsid)  # a daemon: leaves group and parents
time.sleep(600)
"""
PARENT = f"""
import os, subprocess, sys, threading
from turngym.system.guardian import VARIABLE, Guardian

guardian = Guardian()
words = [sys.executable, "-I", "-S", "-c", {PROGRAM!r}]
started, marks = [], [guardian.new_mark() for _ in range(2)]


def start():
    for mark in marks:
        variables = {{**os.environ, VARIABLE: mark}}
        made = subprocess.Popen(words, env=variables, start_new_session=True, stdout=subprocess.PIPE)
        guardian.watch(made.pid)
        started.append(made)


thread = threading.Thread(target=start)
thread.start()
thread.join()  # a signal at the death of the thread that started a program would end it here
for made in started:
    print(made.pid, *[int(made.stdout.readline()) for _ in range(3)], flush=True)
if sys.stdin.read(1) == "e":
    guardian.end(started[0].pid, marks[0])
    print(started[0].wait(), flush=True)
sys.stdin.read()
guardian.close()
assert started[1].wait() == -9
"""


@contextmanager
def started(source: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    variables = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", source], env=variables, **pipes) as process:
        yield process


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_folders_of_dead_processes_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    foreign = tmp_path / "turngym-without-a-lock"
    foreign.mkdir()
    killed_run = tmp_path / "turngym-my-study"
    killed_run.mkdir()
    (killed_run / ".lock").write_text('{"pid": 0, "host": "", "started": 0, "since": ""}', "utf8")
    with started(MAKER, tmp_path) as dead, started(MAKER, tmp_path) as living:
        left, used = Path(line(dead)), Path(line(living))
        (tmp_path / "turngym-link").symlink_to(used)
        dead.kill()
        dead.wait()
        assert (left / "deep" / "file").exists()
        with started(MAKER, tmp_path) as third:
            own = Path(line(third))
            assert not left.exists() and (used / "deep" / "file").exists() and foreign.exists()
            assert killed_run.exists(), "a lock alone is that of a run"
            for process, folder in ((living, used), (third, own)):
                process.communicate("")
                assert process.returncode == 0 and not folder.exists(), "a process removes its own folder"


def test_a_process_keeps_its_folder_and_may_sweep_again(tmp_path: Path) -> None:
    own = scratch_root()
    assert scratch_root() == own and own.stat().st_mode & 0o777 == 0o711
    assert own.parent == Path(tempfile.gettempdir())
    assert remove_dead(tmp_path, own) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", ["killed", "closed"])
def test_all_that_watched_programs_started_ends_with_the_process_that_started_them(tmp_path: Path, how: str) -> None:
    with started(PARENT, tmp_path) as parent:
        processes = [int(number) for _ in range(2) for number in line(parent).split()]
        assert len(processes) == 8 and not any(map(has_ended, processes))
        if how == "killed":
            os.kill(parent.pid, signal.SIGKILL)
        else:
            parent.communicate("x")
            assert parent.returncode == 0
        wait_for(lambda: all(map(has_ended, processes)))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_program_that_is_ended_leaves_nothing_and_others_stay(tmp_path: Path) -> None:
    with started(PARENT, tmp_path) as parent:
        ended, others = ([int(number) for number in line(parent).split()] for _ in range(2))
        assert parent.stdin is not None
        parent.stdin.write("e")
        parent.stdin.flush()
        assert line(parent) == "-9"
        wait_for(lambda: all(map(has_ended, ended)))
        assert not any(map(has_ended, others))
        parent.communicate("")
        assert parent.returncode == 0
        wait_for(lambda: all(map(has_ended, others)))
