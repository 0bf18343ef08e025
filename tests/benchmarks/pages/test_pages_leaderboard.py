"""The pages of a leaderboard and of one evaluation: right numbers, safe whatever the files say, and their commands."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from page_reading import Reading, assert_harmless, macros
from submissions import ENV, HOSTILE, changed, play, rows_of, write_rows

from turngym.__main__ import main
from turngym.agents.intervals import Estimate
from turngym.benchmarks.leaderboard.entries import LeftOut, read_entries
from turngym.benchmarks.leaderboard.table import build_leaderboard
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.pages.submission import duration
from turngym.benchmarks.pages.tables import Axis, Cell, Column, Line, Table, bar, estimate_cell, figure
from turngym.web.page import page


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with two submissions on the same tasks, one of them with baselines and repeated attempts."""
    path = tmp_path_factory.mktemp("played")
    play(path / "random", "random", "--baselines", "--repeats", "2")
    play(path / "expert", "expert")
    return path


def shown(*paths: Path) -> Reading:
    return Reading(leaderboard_page(build_leaderboard(*read_entries(paths))))


def percent(content: Any) -> list[str]:
    value, low, high = (f"{100 * content[key]:.1f}" for key in ("value", "ci_low", "ci_high"))
    return [value, f"{low} to {high}"]


def test_every_row_shows_rank_numbers_intervals_and_status(played: Path) -> None:
    content = shown(played)
    assert_harmless(content, scripts=2)
    for name in ("random", "expert"):
        told = json.loads((played / name / "results.json").read_text("utf8"))
        (row,) = [row for row in content.rows if len(row) > 5 and row[1].startswith(name)]
        value, interval = percent(told["mean"])
        assert row[2].split()[0] == value and interval in row[2]
        assert row[-1] == "not checked" and row[-2] == told_date(played / name)
    assert content.tags.count("table") == 1 and "2 submissions in 1 table" in content.text


def told_date(path: Path) -> str:
    return str(json.loads((path / "metadata.json").read_text("utf8"))["date"])


def test_columns_that_no_row_could_fill_are_left_out_and_others_tell_what_is_unknown(played: Path) -> None:
    head, *rows = shown(played).rows
    assert "tokens *" not in head and "cost *" not in head and {"pass@2 %", "pass^2 %", "normalised"} <= set(head)
    assert {len(row) for row in rows} == {len(head)}
    expert = next(row for row in rows if row[1].startswith("expert"))
    assert expert[head.index("pass@2 %")] == "–"


def test_tables_of_different_tasks_are_apart_and_say_so(played: Path, tmp_path: Path) -> None:
    fewer = play(tmp_path / "fewer", "random", episodes=3)
    content = shown(played, fewer)
    assert content.tags.count("table") == 2 and "3 submissions in 2 tables" in content.text
    assert "version 0: tasks 3 from seed" in content.text and "version 0: tasks 6 from seed" in content.text
    assert "from seed" not in shown(played).text


def test_what_files_say_cannot_become_part_of_the_page(played: Path, tmp_path: Path) -> None:
    def spoil(metadata: dict[str, Any]) -> None:
        metadata |= {
            "name": HOSTILE,
            "contact": [HOSTILE],
            "models": {"a": HOSTILE, "b": 3, "c": None},
        }
        metadata |= {"parameters": {"<b>": HOSTILE}, "opponents": HOSTILE}

    def spoil_config(config: dict[str, Any]) -> None:
        config["suite"] |= {"name": HOSTILE, "protocol": HOSTILE}
        config["sampling"] = {HOSTILE: HOSTILE, "inner": [{}, [None]]}
        config["agent"] = HOSTILE
        config["environments"][0] |= {"label": HOSTILE, "env": HOSTILE}

    hostile = changed(played / "expert", tmp_path / "<script>name", metadata=spoil, config=spoil_config)
    write_rows(hostile, [{**row, "label": HOSTILE} for row in rows_of(hostile)])
    board = build_leaderboard(*read_entries([played, hostile]))
    assert len(board.groups) == 2
    left_out = LeftOut(Path(f"/{HOSTILE}"), HOSTILE, (HOSTILE,))
    text = leaderboard_page(
        build_leaderboard([row for group in board.groups for row in group.entries], [left_out]), HOSTILE
    )
    content = Reading(text)
    assert_harmless(content, scripts=2)
    assert "img" not in content.tags and "\x07" not in text and "\u202e" not in text
    assert content.text.count('<img src=x onerror="alert(1)">') > 10, "and it can be read"


def test_a_suite_of_scores_shows_scores_and_success_beside(tmp_path: Path) -> None:
    source = play(tmp_path / "bandit", "random", "--baselines", target="turngym/GaussianBandit-v0", episodes=4)

    def by_score(content: dict[str, Any]) -> None:
        (content["suite"] if isinstance(content["suite"], dict) else content)["metric"] = "score"

    content = shown(changed(source, tmp_path / "scores", config=by_score, results=by_score))
    told = json.loads((source / "results.json").read_text("utf8"))["environments"]["turngym/GaussianBandit-v0"]
    head, row = content.rows
    assert head[2:4] == ["score", "success %"]
    assert row[2].startswith(f"{told['score']['value']:.3f} ".replace("-", "−"))
    assert row[3].startswith(f"{100 * told['success']['value']:.1f} ")


def test_an_empty_list_is_a_page_that_says_so() -> None:
    content = Reading(leaderboard_page(build_leaderboard([])))
    assert "There is no submission to show." in content.text and content.tags.count("table") == 0
    assert_harmless(content, scripts=2)


def test_the_command_names_broken_folders_on_the_page_and_on_the_console(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = changed(played / "expert", tmp_path / "forged", results=lambda r: r["mean"].update(value=0.5))
    target = tmp_path / "deep" / "page.html"
    assert main(["leaderboard", str(played), str(forged), str(tmp_path / "gone"), "-o", str(target)]) == 0
    told = capsys.readouterr()
    assert f"left out: {forged}" in told.err and "aggregate" in told.err and "gone" in told.err
    assert "2 submissions in 1 table" in told.out
    content = Reading(target.read_text("utf8"))
    assert "2 folders are in no table" in content.text and str(forged) in content.text and "aggregate" in content.text
    assert content.text.count("replayed") >= 2
    assert main(["leaderboard", str(played), "--replay", "0", "-o", str(target)]) == 0
    assert "self-reported" in Reading(target.read_text("utf8")).text


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_without_any_submission_the_command_fails_and_writes_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    target = tmp_path / "page.html"
    assert main(["leaderboard", str(tmp_path / name), "-o", str(target)]) == 2
    told = capsys.readouterr().err
    assert f"left out: {tmp_path / name}: " in told and "so no page was written" in told and not target.exists()


def test_the_command_prints_json_and_writes_no_page_unless_asked(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", str(played), "--json", "--no-verify"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tables"][0]["rows"]) == 2 and not list(tmp_path.iterdir())
    assert main(["leaderboard", str(played), "--no-verify"]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["leaderboard.html"]


@pytest.mark.parametrize("words", [[], ["x", "--replay", "2"], ["x", "--seed", "-1"], ["x", "-o", "."]])
def test_the_command_refuses_what_makes_no_sense(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", *words]) == 2
    assert "error" in capsys.readouterr().err.lower()


def test_report_writes_the_page_of_an_evaluation(played: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert main(["report", str(played / "random"), "-o", str(target)]) == 0
    content = Reading(target.read_text("utf8"))
    assert_harmless(content, scripts=2)
    told = json.loads((played / "random" / "results.json").read_text("utf8"))
    value, interval = percent(told["mean"])
    row = content.row(ENV.removeprefix("turngym/"))
    assert row[1].startswith(value) and interval in row[1]
    assert row[2] == f"{100 * told['baselines']['random']['mean']['value']:.1f}" and row[3] == "100.0"
    assert f"Success {value} %" in content.text and "complete" not in content.text


def test_report_of_an_evaluation_that_is_not_complete_says_so(played: Path, tmp_path: Path) -> None:
    half = changed(played / "expert", tmp_path / "half")
    broken = {"fault": HOSTILE, "status": "env_error", "success": 0, "score": 0.0, "returns": 0.0}
    write_rows(half, [{**row, **broken, "terminated": False} for row in rows_of(half)[:3]])
    assert main(["report", str(half)]) == 0
    content = Reading((half / "report.html").read_text("utf8"))
    assert "It is not complete" in content.text and "3 episodes broke" in content.text
    assert_harmless(content, scripts=2)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.0, "0 s"), (59.6, "1 min"), (3600, "1 h"), (90061, "1 d 1 h"), (-5, "–"), (float("inf"), "–")],
)
def test_durations_have_two_units_at_most(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_bars_stay_inside_of_their_axis() -> None:
    drawn = bar(Estimate(2.0, 0.1, -3.0, 9.0, 1, 1, ""), Axis(0, 1))
    assert "--to:100.00%" in drawn.fill and drawn.span == "--low:0.00%;--high:100.00%"
    below = bar(Estimate(-10.0, 1, -20.0, 0.0, 1, 1, ""), Axis(-20, 80))
    assert below.fill == "--from:10.00%;--to:20.00%" and below.zero == "--zero:20.00%"


def test_numbers_that_are_none_are_shown_and_sorted_as_unknown() -> None:
    nothing = Estimate(float("nan"), float("nan"), float("nan"), float("nan"), 0, 0, "no episodes")
    assert estimate_cell(nothing, Axis(0, 1)) == estimate_cell(None, Axis(0, 1)) == Cell("–")
    table = Table("c", [Column("a")], [Line("k", [Cell("–", float("nan"))]), Line("l", [Cell("1", 1.0)])])
    parts = macros("turngym.benchmarks.pages:parts.html")
    assert Reading(parts.sortable_table(table)).values("data-value") == ["1.0"]
    assert figure(-0.04) == "0.0" and figure(-1.5) == "−1.5"


def test_a_script_that_would_end_itself_is_refused() -> None:
    for text in ("x = '</SCRIPT>'", "<!-- x"):
        with pytest.raises(ValueError, match="may not hold"):
            page("title", script=text)


def test_a_script_is_named_by_the_hash_that_a_browser_computes_and_more_may_be_allowed() -> None:
    content = Reading(page("t", script="a();\r\nb();", policy="connect-src 'self'", window="w", subtitle="<s>"))
    (policy,) = [value for value in content.values("content") if value.startswith("default-src")]
    known = base64.b64encode(hashlib.sha256(b"a();\nb();").digest()).decode()
    assert policy.endswith(f"'sha256-{known}'; connect-src 'self'") and "<s>" in content.text
