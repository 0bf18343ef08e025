"""Text of others on a terminal: no control character of a submission reaches it."""

import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from submissions import changed, play, rows_of, write_rows

from turngym.__main__ import main
from turngym.agents.chat_client.exchange import CallFailed
from turngym.terminal.console import Console
from turngym.text import printable

ROOT = Path(__file__).parents[2]

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp\u2066\u2028\x00\r\x08\x7f\U000e0041[red]"


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() and (shown == text) == text.isprintable()
    assert not any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in shown)


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = play(tmp_path_factory.mktemp("printed") / "true", "random", "--seed", "3")

    def spoil(config: Any) -> None:
        config["suite"]["name"] = config["agent"] = EVIL
        config["environments"][0] |= {"label": EVIL, "wrappers": [EVIL]}

    folder = changed(path, path.parent / "evil", config=spoil, metadata=lambda m: m.update(name=EVIL))
    write_rows(folder, [{**row, "label": EVIL, "fault": EVIL, "status": "env_error"} for row in rows_of(folder)])
    return folder


@pytest.mark.parametrize(
    "words",
    [["verify", "F"], ["verify", "F", "--json"], ["compare", "F", "F"], ["compare", "F", "F", "--json"]],
    ids=" ".join,
)
def test_what_is_printed_of_a_submission_is_harmless(
    words: list[str], evil: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(evil) if word == "F" else word for word in words])
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        assert is_harmless(text)
    if "--json" in words and captured.out:
        assert json.loads(captured.out)


def test_folders_and_reasons_of_a_leaderboard_are_harmless(evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["leaderboard", str(evil), "--no-verify", "--out", str(evil.parent / "page.html")])
    main(["leaderboard", str(evil), "--json"])
    captured = capsys.readouterr()
    assert not any(sign in captured.out + captured.err for sign in ("\x9b", "\u202e", "\x07"))


def test_errors_that_quote_a_file_are_harmless(evil: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = changed(evil, evil.parent / "other", config=lambda config: config["suite"].update(name="\x1b[31mother"))
    assert main(["compare", str(evil), str(other)]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_what_is_printed_on_a_console_is_harmless() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system=None)
    table = Table(title=EVIL)
    table.add_column(EVIL)
    table.add_row(EVIL)
    for shown in (EVIL, table):
        console.print(shown)
    text = stream.getvalue()
    assert "owned" in text and "\\x1b[2J" in text and is_harmless(text)


def test_codes_of_emojis_are_printed_as_they_are() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    table = Table()
    table.add_row("mine.py:Three: 3")
    console.print("mine.py:Three: 2", table, markup=False)
    assert "mine.py:Three: 2" in stream.getvalue() and "mine.py:Three: 3" in stream.getvalue()


def test_every_console_is_the_one_that_prints_harmlessly() -> None:
    own = {
        file
        for layer in ("agents", "benchmarks", "envs", "trainers", "turngym", "wrappers")
        for file in (ROOT / layer).rglob("*.py")
        if "studies" not in file.parts and re.search(r"rich\.console import .*\bConsole\b", file.read_text("utf8"))
    }
    assert own == set()


def test_errors_of_servers_are_harmless() -> None:
    assert is_harmless(str(CallFailed("status", EVIL)))
