"""Completion by the Tab key: the script that bash reads, run by bash."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

import pytest

from turngym.__main__ import COMMANDS, main

_ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_tyro_turngym
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the script for bash."""
    file = tmp_path_factory.mktemp("completion") / "turngym"
    file.write_text(printed("bash"))
    return file


def printed(shell: str) -> str:
    """Return what the command prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["completion", shell]) == 0
    return shown.getvalue()


def offered(script: Path, folder: Path, *words: str) -> set[str]:
    """Return what bash offers for the last word."""
    asked = ["bash", "-c", _ASK, "bash", str(script), "turngym", *words]
    found = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_bash_completes_commands_options_choices_and_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert offered(script, tmp_path, "lead") == {"leaderboard"}
    assert offered(script, tmp_path, "") >= set(COMMANDS)
    assert offered(script, tmp_path, "train", "--rollout.gr") == {"--rollout.groups", "--rollout.group-size"}
    assert offered(script, tmp_path, "eval", "--schedule", "") == {"None", "lockstep", "continuous"}
    assert offered(script, tmp_path, "view", "res") == {"results"}
    assert offered(script, tmp_path, "train", "--run-dir", "res") == {"results"}


def test_bash_completes_ids_where_a_command_takes_one(script: Path, tmp_path: Path) -> None:
    assert offered(script, tmp_path, "eval", "turngym/KuhnPokerS") == {"turngym/KuhnPokerSeat-v0"}
    assert offered(script, tmp_path, "eval", "turngym-c") == {"turngym-core"}
    assert offered(script, tmp_path, "train", "--env", "turngym/FrozenLake-") == {"turngym/FrozenLake-v0"}
    assert offered(script, tmp_path, "view", "turngym/Kuhn") == set()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_have_the_same_commands(shell: str) -> None:
    text = printed(shell)
    assert all(f"'{name}': {{'description'" in text for name in COMMANDS)
    assert "--rollout.group-size" in text and "--resume" in text and " turngym/FrozenLake-v0 " in text


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "csh" in capsys.readouterr().err
