"""``turngym new-env --minimal``: twelve lines are a whole environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.__main__ import main


def run(folder: Path, *words: str) -> str:
    found = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("minimal")
    shown = run(path, "-m", "turngym", "new-env", "LockPicker", "--minimal")
    assert "written: lock_picker.py" in shown and [each.name for each in path.iterdir()] == ["lock_picker.py"]
    return path


def test_it_has_twelve_lines_with_imports_and_registration(folder: Path) -> None:
    lines = [line for line in (folder / "lock_picker.py").read_text("utf8").splitlines() if line]
    assert len(lines) == 12 and ";" not in "".join(lines) and max(map(len, lines)) <= 120


def test_it_registers_and_plays(folder: Path) -> None:
    program = """
import gymnasium, lock_picker, turngym
env = gymnasium.make("my/LockPicker-v0")
text, info = env.reset(seed=1)
over = False
while not over:
    number = int(text.split()[-1].rstrip("."))
    text, reward, terminated, truncated, info = env.step("left" if number > 0 else "right")
    over = terminated or truncated
vector = turngym.make_vec("my/LockPicker-v0", 2)
print(reward, info["success"], vector.reset(seed=[1, 2])[0])
"""
    shown = run(folder, "-c", program)
    assert shown.startswith("1.0 1 ") and shown.count("The dial shows") == 2


def test_it_keeps_every_promise(folder: Path) -> None:
    shown = run(folder, "-m", "turngym", "check", "lock_picker.py:LockPicker", "--json", "--episodes", "1")
    (report,) = json.loads(shown)["environments"]
    assert report["ok"] and sum(rule["status"] == "passed" for rule in report["rules"]) >= 36


def test_it_is_evaluated_from_its_file(folder: Path) -> None:
    words = ["-m", "turngym", "eval", "lock_picker.py:LockPicker", "--agent", "random", "--episodes", "2", "--json"]
    assert json.loads(run(folder, *words))["environments"]["my/LockPicker-v0"]["faults"]["n_games"] == 2


def test_it_overwrites_nothing_and_is_no_package(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = (folder / "lock_picker.py").read_text("utf8")
    assert main(["new-env", "LockPicker", "--minimal"]) == 2
    assert "lock_picker.py exists already" in capsys.readouterr().err
    assert main(["new-env", "DoorOpener", "--minimal", "--package"]) == 2
    assert "--minimal excludes --package" in capsys.readouterr().err
    assert (folder / "lock_picker.py").read_text("utf8") == before and not list(folder.glob("door*"))
