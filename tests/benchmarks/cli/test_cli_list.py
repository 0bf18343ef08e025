"""``turngym list`` as a person reads it: by family, in 80 columns, plain where it is piped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli.options.parsing import text_env_ids
from turngym.benchmarks.cli.terminal.listing import SHELVES, columns
from turngym.benchmarks.suites import SUITES
from turngym.envs.registration import games, seat_id


def listed(words: list[str], capsys: pytest.CaptureFixture[str], columns: int = 80) -> list[str]:
    """Return the lines that a command prints on a terminal of that width."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        assert main(["list", *words]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_list_has_each_environment_on_one_line_by_family(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed([], capsys, width)
    assert max(map(len, lines)) <= width
    headings = [line.partition(" (")[0] for line in lines if line and not line.startswith(" ")]
    assert headings[: len(SHELVES)] == list(SHELVES.values())
    ids = [line.split()[0] for line in lines if line.startswith("  turngym/")]
    seats = {seat_id(game) for game in games()}
    assert sorted(ids) == sorted((set(text_env_ids()) - seats) | set(games()))
    (sokoban,) = [line for line in lines if "turngym/Sokoban-v0" in line]
    assert sokoban.endswith("Push a box onto its goal in a small room.") or width < 80
    assert headings[len(SHELVES)] == "algorithms" and any("grpo" in line.replace(",", "").split() for line in lines)


def test_training_methods_are_listed_by_family_with_their_needs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(["algorithms"], capsys, 200)
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert [heading.split()[0] for heading in headings] == ["Methods"] * 5 + ["Modifiers"]
    under = {line.split()[0]: heading for heading, line in _with_headings(lines)}
    assert [under[name] for name in ("gigpo", "opd", "lspo", "ppo", "rae", "tis")] == headings
    (line,) = [line for line in lines if line.startswith("  gigpo ")]
    assert line.endswith("Group-in-group policy optimisation. [anchors, reference logprobs]")
    (line,) = [line for line in lines if line.startswith("  dppo ")]
    assert line.endswith("on another method."), "it needs nothing besides what its method needs"


def _with_headings(lines: list[str]) -> Iterator[tuple[str, str]]:
    heading = ""
    for line in lines:
        heading = line if line and not line.startswith(" ") else heading
        if line.startswith("  "):
            yield heading, line


def test_a_piped_list_is_plain_text_of_80_columns() -> None:
    words = [sys.executable, "-m", "turngym", "list", "turngym/Sokoban-v0"]
    found = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 80 and "\x1b" not in found.stdout
    assert not any(line != line.rstrip() for line in lines) and "\u2500" not in found.stdout


def test_the_page_of_an_environment_has_rules_options_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(["turngym/SokobanHard-v0"], capsys)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert lines[0] == "turngym/SokobanHard-v0" and "Push two boxes onto their goals" in lines[1]
    assert "size=8, boxes=2, max_turns=60" in text and "same family:     turngym/Sokoban-v0" in text
    assert "Answer with one move: up, down, left or right." in text
    (size,) = [line for line in lines if line.startswith("  size=8 ")]
    assert size.rstrip().endswith("outer walls included. (a whole number")
    assert text.index("\nRules") < text.index("\nOptions") < text.index("\nExample (seed 1)") < text.index("\nNext")
    assert "[action]" in text and "[reward -0.1]" in text
    assert lines[-2:] == [
        "  turngym play turngym/SokobanHard-v0",
        "  turngym eval turngym/SokobanHard-v0 --agent random --episodes 20",
    ]


def test_the_page_of_a_game_shows_the_rules_of_a_seat(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(listed(["turngym/KuhnPokerMatch-v0"], capsys))
    assert "one seat of it:" in text and "turngym/KuhnPokerMatchSeat-v0" in text and "[observation]" in text


def test_the_page_of_a_file_names_what_commands_take(tmp_path: Path) -> None:
    (tmp_path / "coins.py").write_text(
        "from turngym.envs import register_env\nfrom turngym.envs.textgames.guess_the_number import GuessTheNumber\n"
        "class Coin(GuessTheNumber):\n    pass\nregister_env('mine/Coin-v0', Coin, summary='A coin.')\n"
    )
    command = [sys.executable, "-m", "turngym", "list", "coins.py:Coin"]  # what it registers ends with its process
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert "  id:  mine/Coin-v0" in lines and "  turngym play coins.py:Coin" in lines, done.stderr


def test_an_environment_that_cannot_be_made_shows_its_options_and_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    text = "\n".join(listed(["turngym/ALFWorld-v0"], capsys))
    assert "Rules and example cannot be shown here: ALFWorld needs its games" in text
    assert "Example" not in text and "max_turns=" in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sokoban", "no environment, component or kind named 'sokoban'. Did you mean 'turngym/Sokoban-v0'?"),
        ("turngym/KuhnPokr-v0", "Did you mean 'turngym/KuhnPoker"),
        ("PCL", "no environment, component or kind named 'PCL'. Did you mean 'pcl'?"),
        ("algorithm", "Did you mean 'algorithms'?"),
        ("CartPole-v1", "CartPole-v1 is not a text environment of turngym"),
    ],
)
def test_unknown_names_get_a_suggestion(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", name]) == 2
    assert message in capsys.readouterr().err


def test_a_training_method_is_shown_with_all_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(["grpo"], capsys, 110)
    assert lines[0] == "grpo, one of the algorithms" and lines[-1] == "  turngym train --algorithm grpo"
    assert "  grpo.kl_coef=0.04                Weight of the KL to the reference policy; above 0" in "\n".join(lines)
    assert "  grpo.clip_low=0.2                Clip range below a ratio of 1." in lines, "inherited settings too"
    assert "  target=0.5    Success rate that is sought." in listed(["pcl"], capsys, 110)
    assert main(["list", "reflexion", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reflexion"]["kind"] == "styles"


def test_a_suite_is_shown_with_what_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "turngym-core"]) == 0
    text = capsys.readouterr().out
    suite = SUITES["turngym-core"]
    assert f"version {suite.version}" in text and "turngym eval turngym-core" in text
    assert all(entry.label in text for entry in suite.entries)
    assert main(["list", "turngym-core", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["turngym-core"]
    assert [entry["episodes"] for entry in shown["entries"]] == [25] * len(suite.entries)


def test_columns_wrap_or_cut_their_texts() -> None:
    rows = [("a/Door-v0", "Find the door that opens.", ""), ("a/VeryLongNameOfAnEnvironment-v0", "Pick it.", "[web]")]
    assert list(columns(rows, 32)) == [
        "  a/Door-v0         Find the",
        "                    door that",
        "                    opens.",
        "  a/VeryLongNameOfAnEnvironment-v0  ",
        "                    Pick it.",
        "                    [web]",
    ]
