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

from turngym.system.scratch import remove_dead, scratch_root

MAKER = """
import sys, time
from turngym.system.scratch import scratch_root
folder = scratch_root() / "deep"
folder.mkdir()
(folder / "file").write_text("x")
print(folder.parent, flush=True)
sys.stdin.read()
"""
PARENT = """
import subprocess, sys, threading
from turngym.system.guardian import Guardian

guardian = Guardian()
words = [sys.executable, "-I", "-S", "-c", "import os, time; os.fork(); print('x', flush=True); time.sleep(600)"]
started = []


def start():
    started.append(subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE))
    guardian.watch(started[0].pid)


thread = threading.Thread(target=start)
thread.start()
thread.join()  # a signal at the death of the thread that started a program would end it here
assert started[0].stdout.read(4) == b"x\\nx\\n"
print(started[0].pid, flush=True)
sys.stdin.read()
guardian.close()
assert started[0].wait() == -9
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


def group_lives(group: int) -> bool:
    """Return whether a process of a group runs; those that have ended and are not waited for do not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = status.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(found) == group and state not in "ZX":
            return True
    return False


def test_folders_of_dead_processes_are_removed_and_those_in_use_stay(tmp_path: Path) -> None:
    foreign = tmp_path / "turngym-without-a-lock"
    foreign.mkdir()
    with started(MAKER, tmp_path) as dead, started(MAKER, tmp_path) as living:
        left, used = Path(line(dead)), Path(line(living))
        (tmp_path / "turngym-link").symlink_to(used)
        dead.kill()
        dead.wait()
        assert (left / "deep" / "file").exists()
        with started(MAKER, tmp_path) as third:
            own = Path(line(third))
            assert not left.exists() and (used / "deep" / "file").exists() and foreign.exists()
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
def test_watched_programs_end_with_the_process_that_started_them(tmp_path: Path, how: str) -> None:
    with started(PARENT, tmp_path) as parent:
        group = int(line(parent))
        assert group_lives(group)
        if how == "killed":
            os.kill(parent.pid, signal.SIGKILL)
        else:
            parent.communicate("")
            assert parent.returncode == 0
    wait_for(lambda: not group_lives(group))
