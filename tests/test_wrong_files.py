"""Commands that read what others wrote: files and folders of another kind are told in one to three lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from turngym.__main__ import main
from turngym.benchmarks.commands.list import players

COMMANDS = {
    "report": ["report", "{}"],
    "compare": ["compare", "{}", "{}"],
    "leaderboard": ["leaderboard", "{}", "-o", "page.html"],
    "export": ["export", "{}", "--format", "inspect", "-o", "log.json"],
    "label-progress": ["label-progress", "{}", "-o", "labels"],
    "fit-reward": ["fit-reward", "{}", "--model", "spa", "-o", "fitted"],
    "fit-reward --model": ["fit-reward", "empty", "--model", "{}", "-o", "fitted"],
    "check": ["check", "{}"],
    "list": ["list", "{}"],
    "play": ["play", "{}"],
    "eval": ["eval", "{}"],
    "tournament": ["tournament", "{}"],
    "serve-env": ["serve-env", "{}"],
    "train --env": ["train", "--env", "{}"],
    "train --algorithm": ["train", "--algorithm", "{}"],
    "train --reward-model": ["train", "--reward-model", "spa:path={}"],
}


@pytest.mark.parametrize("value", ["zzz", "empty", "folder", "text", "broken", "/proc/self/mem"])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_is_of_another_kind_is_told_in_a_sentence(
    words: list[str], value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    Path("text").write_text("hello\n")
    Path("folder").mkdir()
    Path("broken").mkdir()
    Path("broken", "config.json").write_text("[")
    status = main([word.format(value) for word in words])
    out, err = capfd.readouterr()
    assert status == 2, out + err
    assert "Traceback" not in err and 1 <= len(err.strip().splitlines()) <= 3, err


def test_players_of_single_games_are_listed() -> None:
    found = {row["name"]: row["summary"] for row in players()}
    assert "Werewolf" in found["rule_based"] and {"random", "first_legal", "tit_for_tat"} <= found.keys()
