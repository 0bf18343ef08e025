"""``turngym verify`` on evaluations of every kind: suites, wrappers, small games, models, other ways of running."""

import json
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.__main__ import main
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.leaderboard.table import build_leaderboard
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.suites import SUITES
from turngym.benchmarks.verification.verify import verify

LAKE, GUESS = "turngym/FrozenLake-v0", "turngym/GuessTheNumber-v0"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a short run of a whole suite: the first task of each environment."""
    path = tmp_path_factory.mktemp("suites") / "core"
    assert main(["eval", "turngym-core", "--agent", "random", "--episodes", "1", "--out", str(path)]) == 0
    return path


def test_a_suite_is_replayed_in_every_environment(core: Path) -> None:
    found = verify(core)
    assert found.label == "replayed" and found.replayed == len(SUITES["turngym-core"].entries)
    assert "only the first tasks of 18 environments of the suite were played" in found.notes


def edited(core: Path, tmp_path: Path, drop: str = "", **suite: str | int) -> Path:
    """Return a copy without an environment, as if it did not belong to the suite, or with another suite's header."""
    path = tmp_path / "edited"
    path.mkdir()
    for name in ("episodes", "transcripts"):
        lines = (core / f"{name}.jsonl").read_text("utf8").splitlines(keepends=True)
        (path / f"{name}.jsonl").write_text("".join(x for x in lines if json.loads(x)["label"] != drop), "utf8")
    config, results, metadata = (
        json.loads((core / f"{name}.json").read_text("utf8")) for name in ("config", "results", "metadata")
    )
    config["environments"] = [each for each in config["environments"] if each["label"] != drop]
    config["suite"] |= suite
    results["environments"].pop(drop, None)
    results |= {"suite": config["suite"]["name"], "version": config["suite"]["version"]}
    for name, content in (("config", config), ("results", results), ("metadata", metadata)):
        (path / f"{name}.json").write_text(json.dumps(content), "utf8")
    return path


def test_a_suite_without_its_hardest_environment_is_no_result(core: Path, tmp_path: Path) -> None:
    found = verify(edited(core, tmp_path, drop="turngym/Sudoku-v0"), replay=0)
    assert "suite" in {finding.name for finding in found.findings}
    assert any("there are 17, expected 18" in finding.message for finding in found.findings)


@pytest.mark.parametrize(
    "header", [{"version": 7}, {"protocol": "Ten attempts."}, {"name": "textgames"}, {"name": "turngym-cor"}]
)
def test_another_suite_version_or_protocol_is_named(header: dict[str, Any], core: Path, tmp_path: Path) -> None:
    found = verify(edited(core, tmp_path, **header), replay=0)
    findings = [finding for finding in found.findings if finding.name == "suite"]
    assert findings and found.label == "rejected"
    if header == {"name": "turngym-cor"}:
        assert "Did you mean 'turngym-core'?" in findings[0].message


@pytest.mark.parametrize(
    "words",
    [
        [LAKE, "--agent", "random", "--wrapper", "turn_limit:limit=3", "--wrapper", "history:k=2", "--episodes", "6"],
        [LAKE, "--agent", "random", "--backend", "process", "--schedule", "continuous", "--episodes", "6"],
        ["turngym/TowerOfHanoi-v0", "--agent", "expert", "--option", "start=random", "--option", "discs=2"],
        [GUESS, "--agent", "scripted:nonsense,{},50", "--option", "high=9", "--split", "dev", "--episodes", "5"],
        ["turngym/TicTacToeSeat-v0", "--agent", "random", "--option", "opponents=minimax", "--episodes", "4"],
    ],
    ids=["wrappers", "process", "all-tasks", "nonsense", "seat"],
)
def test_what_the_command_writes_is_accepted(words: list[str], tmp_path: Path) -> None:
    assert main(["eval", *words, "--out", str(tmp_path / "out")]) == 0
    found = verify(tmp_path / "out", replay=1)
    assert found.findings == () and found.label == "replayed" and found.replayed == found.episodes > 0


def test_the_episodes_of_a_model_are_replayed_without_the_model(tmp_path: Path) -> None:
    small_model().save(tmp_path / "model")
    words = ["eval", LAKE, "--agent", f"hf:{tmp_path / 'model'}", "--episodes", "3", "--max-new-tokens", "3"]
    assert main([*words, "--temperature", "1", "--format", "plain", "--out", str(tmp_path / "out")]) == 0
    for file in (tmp_path / "model").iterdir():
        file.unlink()
    found = verify(tmp_path / "out", replay=1)
    assert found.label == "replayed" and found.replayed == 3


def test_an_environment_that_is_not_installed_here_is_left_self_reported_or_rejected(
    core: Path, tmp_path: Path
) -> None:
    """What cannot be played cannot be called replayed."""
    path = edited(core, tmp_path)
    config = json.loads((path / "config.json").read_text("utf8"))
    config["environments"][0]["env"] = "elsewhere/Game-v0"
    (path / "config.json").write_text(json.dumps(config), "utf8")
    found = verify(path)
    assert found.label == "rejected" and found.replayed == 0, "what has findings is not played"
    assert any("'elsewhere/Game-v0' is not registered here" in note for note in found.notes)


@pytest.mark.parametrize(
    ("words", "notes"),
    [
        ([LAKE, "--episodes", "4"], [f"{LAKE}: only the first 4 tasks of 100 were played"]),
        ([GUESS, "--option", "high=9"], []),
        (
            [GUESS, "--option", "high=9", "--episodes", "1"],
            [f"{GUESS} high=9: only the first 1 task of 100 were played"],
        ),
    ],
    ids=["few", "all", "one"],
)
def test_fewer_tasks_than_are_asked_for_are_noted_and_shown(words: list[str], notes: list[str], tmp_path: Path) -> None:
    """The best 4 tasks of 60 stood in a leaderboard without a word."""
    assert main(["eval", *words, "--agent", "random", "--out", str(tmp_path / "out")]) == 0
    assert [note for note in verify(tmp_path / "out").notes if "were played" in note] == notes
    entries, _ = read_entries([tmp_path / "out"], verify)
    page = leaderboard_page(build_leaderboard(entries))
    assert all(note in page for note in notes) and ("only the first" in page) == bool(notes)
