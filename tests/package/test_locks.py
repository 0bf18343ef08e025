"""One writer a folder: the loser says who holds it and writes nothing, and a dead holder is followed at once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from turngym.errors import FolderInUse
from turngym.system import locks
from turngym.system.locks import LOCK_FILE, FolderLock, Holder

RACERS, ROUNDS = 2, 10
RACE = """
import sys, time
from pathlib import Path
from turngym.errors import FolderInUse
from turngym.system.locks import FolderLock
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
for number in range(rounds):
    place = folder / str(number)
    (place / f"ready-{sys.argv[3]}").touch()
    while len(list(place.glob("ready-*"))) < 2:
        time.sleep(0.0005)
    try:
        lock = FolderLock(place, "test")
    except FolderInUse:
        (place / f"lost-{sys.argv[3]}").touch()
        continue
    (place / f"won-{sys.argv[3]}").touch()
    while not any(place.glob("lost-*")):
        time.sleep(0.0005)
    lock.release()
"""
HOLD = """
import sys, time
from pathlib import Path
from turngym.system.locks import FolderLock
lock = FolderLock(Path(sys.argv[1]), "test")
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def held(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_of_two_processes_one_wins_every_round(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        (tmp_path / str(number)).mkdir()
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path), str(ROUNDS), str(name)]) for name in range(RACERS)
    ]
    assert [racer.wait(timeout=900) for racer in racers] == [0] * RACERS
    for number in range(ROUNDS):
        names = sorted(file.name.partition("-")[0] for file in (tmp_path / str(number)).iterdir())
        assert names == ["lost", "ready", "ready", "won"]


def test_the_message_says_who_holds_the_folder_and_the_way_out(tmp_path: Path) -> None:
    with held(tmp_path) as process:
        before = (tmp_path / LOCK_FILE).read_bytes()
        with pytest.raises(FolderInUse) as found:
            FolderLock(tmp_path, "training run")
        assert (tmp_path / LOCK_FILE).read_bytes() == before
    holder = Holder.read(before.decode())
    assert holder is not None and holder.pid == process.pid
    for part in (f"process {process.pid} on {holder.host} since {holder.since}", "wait for its end or stop it"):
        assert part in str(found.value)


def test_a_killed_holder_is_followed_and_a_release_leaves_nothing(tmp_path: Path) -> None:
    with held(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (tmp_path / LOCK_FILE).exists()
        with FolderLock(tmp_path, "test"):
            assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_that_outlives_the_holder_does_not_hold_the_folder(tmp_path: Path) -> None:
    fork = 'import os\nif os.fork() == 0:\n    print("forked", flush=True)\n    time.sleep(20)\n'
    code = HOLD.replace('print("held"', f'{fork}print("held"')
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = process.stdout.readline() + process.stdout.readline()  # their letters may be mixed
    assert sorted(told) == sorted("held\nforked\n")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    try:
        FolderLock(tmp_path, "test").release()
    finally:
        os.kill(int(children[0]), signal.SIGKILL)
        process.stdout.close()


def test_a_fork_that_outlives_an_update_does_not_hold_the_file(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with locks.file_lock(tmp_path / "labels.json"):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        descriptor = os.open(tmp_path / f".labels.json{LOCK_FILE}", os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', "\x00" * 9000, '{"pid": 1e999}'])
def test_a_damaged_lock_file_is_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text(content)
    FolderLock(tmp_path, "test").release()


def test_without_locks_of_the_system_the_holder_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    here = Holder.here()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for stale in (replace(here, pid=ended.pid), replace(here, started=here.started - 1)):
        (tmp_path / LOCK_FILE).write_text(stale.write())
        FolderLock(tmp_path, "test").release()
    (tmp_path / LOCK_FILE).write_text(here.write())
    with pytest.raises(FolderInUse, match=f"process {os.getpid()} on"):
        FolderLock(tmp_path, "test")
    (tmp_path / LOCK_FILE).write_text(replace(here, host="elsewhere").write())
    with pytest.raises(FolderInUse, match=r"on elsewhere since .*if that process has ended, remove .*\.lock"):
        FolderLock(tmp_path, "test")


def test_a_clock_that_jumps_does_not_touch_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(tmp_path):
        for days in (-400, 400):
            now = time.time()
            monkeypatch.setattr(time, "time", lambda now=now, days=days: now + 86400 * days)
            with pytest.raises(FolderInUse):
                FolderLock(tmp_path, "test")
    FolderLock(tmp_path, "test").release()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    """A folder from elsewhere could else have the name of the holder written over any file of the user's."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / LOCK_FILE).symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"):
        FolderLock(folder, "test")
    assert precious.read_text() == "mine"
