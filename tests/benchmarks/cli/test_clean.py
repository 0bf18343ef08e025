"""`turngym clean`: what it lists and deletes, and what it leaves."""

import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from turngym.__main__ import main
from turngym.storage.files import CACHES, cache_folder
from turngym.system.locks import Holder

ROOT = Path(__file__).parents[3]
WHOLE = f"{len(CACHES) / 2:.1f} MB"
MAKER = (
    "import sys\nfrom turngym.system.scratch import scratch_root\nprint(scratch_root(), flush=True)\nsys.stdin.read()"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Caches and temporary folders of this test alone, and a run in the working directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in (*CACHES, "tokens", "own"):
        cache_folder(name).mkdir(parents=True)
        (cache_folder(name) / "file").write_bytes(bytes(500_000))
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    tempfile.tempdir = None


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_deleted_without_yes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    assert main(["clean"]) == 0
    assert files(home) == before
    out = capsys.readouterr().out
    assert out.count("0.5 MB") == len(CACHES) and f"{WHOLE} in all: `turngym clean --yes` deletes it" in out


def test_caches_are_deleted_and_everything_else_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--yes"]) == 0
    assert files(home) == {"cache/turngym/tokens/file", "cache/turngym/own/file", "runs/first/metrics.jsonl"}
    assert f"deleted {WHOLE}" in capsys.readouterr().out
    assert main(["clean", "--yes"]) == 0
    assert capsys.readouterr().out == "nothing to delete\n"


def test_a_link_and_its_target_stay(home: Path) -> None:
    kept = home / "elsewhere"
    cache_folder("alfworld").rename(kept)
    cache_folder("alfworld").symlink_to(kept)
    assert main(["clean", "--yes"]) == 0
    assert (cache_folder("alfworld") / "file").is_file() and not cache_folder("search").exists()


def test_folders_of_killed_processes_are_deleted_and_those_in_use_stay(home: Path) -> None:
    def start() -> tuple[subprocess.Popen[str], Path]:
        call = [sys.executable, "-c", MAKER]
        process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    living, used = start()
    try:
        killed, left = start()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        stranger = home / "tmp" / "turngym-stranger"
        stranger.mkdir()
        away = home / "tmp" / "turngym-away"
        away.mkdir()
        (away / ".scratch").touch()
        (away / ".lock").write_text(replace(Holder.here(), host="elsewhere").write())
        killed_run = home / "tmp" / "turngym-my-study"
        killed_run.mkdir()
        (killed_run / ".lock").write_text(replace(Holder.here(), started=-1).write())
        assert left.is_dir() and main(["clean"]) == 0 and left.is_dir()
        assert main(["clean", "--yes"]) == 0
        assert used.is_dir() and stranger.is_dir() and away.is_dir() and killed_run.is_dir() and not left.exists()
    finally:
        living.communicate("")
    assert not used.exists()


def test_every_cache_is_known() -> None:
    """A new cache is either deleted by the command or named here."""
    found = set()
    for folder in ("agents", "benchmarks", "envs", "trainers", "turngym", "wrappers"):
        for file in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"cache_folder\((\"\w+\")\)", file.read_text("utf8")))
    assert {json.loads(name) for name in found} - {"tokens"} == set(CACHES)
