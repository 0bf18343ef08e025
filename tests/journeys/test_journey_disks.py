"""Journeys: places that cannot be written, and disks that fill up; what is told, and what ``--resume`` makes of it."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journey import fails, works

HANOI, KUHN = "turngym/TowerOfHanoi-v0", "turngym/KuhnPoker-v0"
TRAIN_WORDS = (
    "train --no-control --iterations 2 --embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 "
    "--embedded.vocabulary 300 --warmup.demonstrations 6 --warmup.epochs 1 --rollout.groups 2 --rollout.group-size 2 "
    "--evaluation.episodes 2 --evaluation.every 0 --checkpoint-every 1"
)
TRAIN = (*TRAIN_WORDS.split(), "--run-dir")
EVAL = ("eval", HANOI, "--agent", "random", "--option", "discs=2", "--episodes", "20", "--num-envs", "1", "--out")
TOURNAMENT = ("tournament", KUHN, "--blocks", "4", "--tables", "1", "--out")
WRITING: dict[str, tuple[str, ...]] = {
    "eval": EVAL,
    "tournament": TOURNAMENT,
    "train": TRAIN,
    "new-env": ("new-env", "LockPicker", "--folder"),
    "leaderboard": ("leaderboard", "{played}", "--out"),
    "report": ("report", "{played}", "--out"),
    "view": ("view", "{played}", "--out"),
}
"""Commands that write, up to the path."""
COMMANDS = [pytest.param(each, marks=pytest.mark.integration) if each == "train" else each for each in WRITING]
PAGES = ("leaderboard", "report", "view")
ORDINARY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""Runs a command of root's without the rights that an ordinary user lacks; it can still read this source tree."""


def before() -> tuple[str, ...]:
    """Return what a command of an ordinary user begins with."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None or subprocess.run([*ORDINARY, "true"], capture_output=True).returncode:
        pytest.skip("root's rights cannot be given up here: setpriv is missing or not allowed to")
    return ORDINARY


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    works(folder, *EVAL, "out")
    return folder / "out"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small file system, apart from pytest's folders, which it would hold up if this process were killed."""
    folder = Path(tempfile.mkdtemp(prefix="small-disk-"))
    mount = shutil.which("mount")
    made = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True)
    if not made or made.returncode:
        folder.rmdir()
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def resize(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)


def words_of(command: str, played: Path) -> list[str]:
    return [word.format(played=played) for word in WRITING[command]]


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(each.relative_to(folder)): each.read_bytes() if each.is_file() else None for each in folder.rglob("*")}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_permission_is_told(command: str, played: Path, tmp_path: Path) -> None:
    """One of somebody else's where that can be had, and one of one's own that is read-only."""
    ordinary = before()
    for name, owner in (("theirs", 65534), ("mine", os.geteuid())):
        closed = tmp_path / name
        closed.mkdir()
        closed.chmod(0o755 if os.geteuid() == 0 and name == "theirs" else 0o555)
        if os.geteuid() == 0:
            os.chown(closed, owner, -1)
        says = (f"error: {name}/new: permission denied: choose another path, or change the permissions.",)
        fails(tmp_path, *words_of(command, played), f"{name}/new", says=says, before=ordinary)
        if command not in PAGES and name == "theirs":
            fails(tmp_path, *words_of(command, played), name, says=(f"error: {name}", "denied"), before=ordinary)
        assert closed.is_dir() and not content(closed)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_disk_is_told(command: str, played: Path, tmp_path: Path, disk: Path) -> None:
    resize(disk, "ro")
    says = (f"error: {disk}/new: the file system is read-only: choose a path on another one.",)
    fails(tmp_path, *words_of(command, played), str(disk / "new"), says=says, apart=command == "eval")
    assert not content(disk) and not content(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_the_place_of_a_folder_is_told(command: str, played: Path, tmp_path: Path) -> None:
    """And a folder in the place of a page, which ``--force`` does not replace."""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    says: tuple[str, ...] = ("error: file", "a file, where a folder is needed: ")
    fails(tmp_path, *words_of(command, played), "file/below", says=says, apart=command == "eval")
    if command in PAGES:
        says = ("error: folder is a folder: pass the file to write, such as folder/",)
    fails(tmp_path, *words_of(command, played), "folder" if command in PAGES else "file", says=says, apart=False)
    assert content(tmp_path) == {"file": b"kept", "folder": None}


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.startswith("latency")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("command", "kept"), [("eval", "episodes"), ("tournament", "games")])
def test_a_full_disk_keeps_what_was_played(command: str, kept: str, tmp_path: Path, disk: Path) -> None:
    words = WRITING[command]
    expected = timeless(works(tmp_path, *words, "out", "--json").result)
    whole = (tmp_path / "out" / "episodes.jsonl").read_text("utf8").count("\n")
    resize(disk, "size=24k")
    told = (
        f"error: out: no space left on the device: make room, then continue with --resume; the finished {kept} are kept"
    )
    fails(disk, *words, "out", says=(told,))
    lines = (disk / "out" / "episodes.jsonl").read_text("utf8").split("\n")[:-1]
    assert 0 < len(lines) < whole and not (disk / "out" / ".lock").exists()
    fails(disk, *words, "out", "--resume", says=(told,))
    resize(disk, "size=8m")
    assert timeless(works(disk, *words, "out", "--resume", "--json").result) == expected
    after = [json.loads(line) for line in (disk / "out" / "episodes.jsonl").read_text("utf8").splitlines()]
    assert len(after) == whole and all(json.loads(line) in after for line in lines)
    assert not [each.name for each in (disk / "out").iterdir() if each.name.startswith(".")]


def test_a_full_disk_leaves_no_half_page(played: Path, disk: Path) -> None:
    resize(disk, "size=8k")
    for command in PAGES:
        fails(disk, *words_of(command, played), "page.html", says=("no space left on the device: free some space",))
        assert not content(disk)
