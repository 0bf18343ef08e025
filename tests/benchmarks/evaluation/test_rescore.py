"""Recorded episodes judged again: what a fresh run with the new judge finds, without playing one."""

import json
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks import evaluate, load_submission
from turngym.benchmarks.evaluation.rescore import rescore
from turngym.errors import ConfigError

ASK = "turngym/Questions-v0"
JUDGE = "def short(task, answer):\n    return 1.0 / len(answer) if answer else 0.0\n"


def numbers(folder: Path) -> list[tuple[Any, ...]]:
    names = ("success", "score", "returns", "length", "actions", "transcript_sha256", "seats", "status")
    return [tuple(row[name] for name in names) for row in load_submission(folder).episodes]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    evaluate(ASK, "expert", episodes=8, options={"split": "train"}, out=tmp_path / "old")
    return tmp_path / "old"


def test_a_changed_judge_gives_what_a_fresh_run_gives(answered: Path, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    reward, before = f"{tmp_path}/judge.py:short", files(answered)
    found = rescore(answered, options={"reward": reward}, out=tmp_path / "new")
    evaluate(ASK, "expert", episodes=8, options={"split": "train", "reward": reward}, out=tmp_path / "fresh")
    again, fresh = numbers(tmp_path / "new"), numbers(tmp_path / "fresh")
    assert [row[:6] for row in again] == [row[:6] for row in fresh] != [row[:6] for row in numbers(answered)]
    assert [row[6:] for row in again] == [row[6:] for row in numbers(answered)], "usage and status as recorded"
    assert files(answered) == before
    assert {each.key[1] for each in found.changes} == {row["task"] for row in load_submission(answered).episodes}
    assert all(each.before["score"] == 1 > each.after["score"] > 0 for each in found.changes)


@pytest.mark.parametrize("env_id", ["turngym/Sokoban-v0", "turngym/HouseholdEasy-v0", "turngym/BernoulliBandit-v0"])
def test_without_a_change_nothing_comes_out_otherwise(env_id: str, tmp_path: Path) -> None:
    evaluate(env_id, "random", episodes=2, repeats=2, out=tmp_path / "old")
    assert rescore(tmp_path / "old", out=tmp_path / "new").changes == ()
    assert numbers(tmp_path / "new") == numbers(tmp_path / "old")


def test_an_episode_that_would_continue_is_cut_where_its_actions_end(answered: Path) -> None:
    found = rescore(answered, options={"reward": "none", "attempts": 2})
    assert found.after.mean.value == 0
    assert {each.note.partition(":")[0] for each in found.changes} == {"context instead of ok"}


def test_verdicts_are_replaced_by_those_of_another_verifier(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Long:\n    def score(self, trajectory):\n        return float(len(trajectory.turns))\n"
    )
    evaluate("turngym/FrozenLake-v0", "random", episodes=3, repeats=2, verifier="progress", out=tmp_path / "old")
    kept, new = rescore(tmp_path / "old"), rescore(tmp_path / "old", verifier=f"{tmp_path}/mine.py:Long")
    assert kept.changes == () and len(new.changes) > 0
    assert all(list(each.after) == ["verifier"] for each in new.changes)
    assert "chosen_of_2" in new.after.as_json()["environments"]["turngym/FrozenLake-v0"]


def test_options_that_change_the_tasks_are_refused(tmp_path: Path) -> None:
    evaluate("turngym/Sokoban-v0", "random", episodes=3, out=tmp_path / "old")
    with pytest.raises(ConfigError, match="its actions cannot be judged on it"):
        rescore(tmp_path / "old", options={"size": 7})


def test_a_folder_names_no_file(answered: Path) -> None:
    config = json.loads((answered / "config.json").read_text("utf8"))
    config["environments"][0]["options"]["reward"] = "evil.py:f"
    (answered / "config.json").write_text(json.dumps(config), "utf8")
    with pytest.raises(ConfigError, match="An option that names a file is taken from the command line only"):
        rescore(answered)
    assert rescore(answered, options={"reward": "auto"}).changes == ()


def test_the_command_lists_what_changed(answered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rescore", str(answered), "--judge", "none", "--changes", "1", "--out", str(tmp_path / "new")]) == 0
    shown = capsys.readouterr().out
    assert "task 0, attempt 0: success 1 -> 0, score 1 -> 0, returns 1 -> 0" in shown
    assert "8 of 8 episodes came out otherwise, 1 are shown." in shown
    assert main(["rescore", str(answered), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"] == []
    assert main(["rescore", str(answered), "--judge", "exactly"]) == 2
    assert main(["rescore", str(answered), "--out", str(tmp_path / "new")]) == 2
