"""CONTRIBUTING.md: the paths that it names exist, and so do the commands and options."""

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.__main__ import main

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf8")
QUOTED = re.findall(r"`([^`]+)`", TEXT.replace("\n", " "))
PATHS = sorted(
    {word for text in QUOTED for word in text.split() if re.fullmatch(r"[\w./]*(/|\.md|\.cff)[\w./]*", word)}
)
COMMANDS = sorted({text for text in QUOTED if text.startswith("turngym ")})
TARGETS = sorted({text.split()[1] for text in QUOTED if text.startswith("make ")})
PLACEHOLDERS = {"path/to/file.py"}


def test_it_says_how_to_add_each_thing_in_few_lines() -> None:
    parts = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))
    kinds = ["environment", "wrapper", "agent", "style", "verifier", "algorithm", "reward", "suite", "plug-in"]
    for kind in kinds:
        (lines,) = [body.strip().splitlines() for title, body in parts.items() if kind in title]
        assert len(lines) < 10


@pytest.mark.parametrize(
    "path", [path for path in PATHS if path not in PLACEHOLDERS and not path.startswith("turngym/")]
)
def test_paths_exist(path: str) -> None:
    if path != "tests/test_x.py":
        assert (ROOT / path).exists()


@pytest.mark.parametrize("command", [command for command in COMMANDS if len(command.split()) > 1])
def test_commands_and_their_options_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)[1:]
    options = [word for word in words if word.startswith("--")]
    with contextlib.suppress(SystemExit):
        assert main([words[0], "--help"]) == 0
    told = capsys.readouterr().out
    assert told and all(option in told for option in options)


def test_targets_of_make_exist() -> None:
    made = (ROOT / "Makefile").read_text("utf8")
    assert all(re.search(rf"^{re.escape(target)}:", made, re.MULTILINE) for target in TARGETS)


def test_the_written_environment_passes_its_own_check(tmp_path: Path) -> None:
    assert main(["new-env", "LockPicker", "--folder", str(tmp_path)]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "turngym", "check", "lock_picker.py:LockPicker", "--episodes", "1", "--in-process"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
