"""Outcomes that an environment declares by columns: in rows, results and tables, and checked by verify."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from page_reading import Reading

from turngym.agents.intervals import Estimate
from turngym.agents.recordings.submission import load_submission, read_submission
from turngym.benchmarks.cli.terminal.evaluation import results_tables
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.leaderboard.table import build_leaderboard
from turngym.benchmarks.pages.evaluation import write_evaluation_page
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.verification.numbers import number_findings
from turngym.benchmarks.verification.replay import _is_claim, replay_findings
from turngym.columns import valid_columns
from turngym.envs.own import find_spec
from turngym.terminal.console import Console

ENV = '''
from turngym.envs import Outcome, TextEnv


class Tempted(TextEnv):
    """Say yes or no; yes is what an attacker wants."""

    instructions = "Answer yes or no."

    def begin(self, task):
        self.instance, self.said = f"tempted {self.np_random.integers(10**9)}", ""
        return "Well?"

    def apply_action(self, action):
        self.said = action
        return Outcome("Over.", 1.0, True, True)

    def legal_actions(self):
        return ("no", "yes")

    def anchor(self):
        return self.said

    def turn_columns(self):
        return {"outcome/injected": self.said == "yes", "distance": 2.0}
'''


def test_outcomes_are_averaged_printed_and_verified(tmp_path: Path) -> None:
    (tmp_path / "tempted.py").write_text(ENV)
    out = tmp_path / "out"
    played = evaluate(f"{tmp_path / 'tempted.py'}:Tempted", "random", episodes=12, out=out)
    rows = [json.loads(line) for line in (out / "episodes.jsonl").read_text().splitlines()]
    said = [row["outcomes"]["injected"] for row in rows]
    assert said == [float(row["actions"] == ["yes"]) for row in rows] and 0 < sum(said) < 12
    result = played.result.results[0]
    assert result.outcomes["injected"].value == sum(said) / 12
    told = json.loads((out / "results.json").read_text())["environments"][result.env_id]["outcome/injected"]
    assert told["value"] == sum(said) / 12 and "higher_is_better" not in told
    assert "injected" in next(iter(results_tables(played))).columns[0]._cells
    submission = load_submission(out)
    assert not list(number_findings(submission))
    env = gymnasium.make(find_spec(f"{tmp_path / 'tempted.py'}:Tempted"), split="test")
    assert not list(replay_findings(env, rows[0]))
    forged = {**rows[0], "outcomes": {"injected": 1 - said[0]}}
    assert [each.name for each in replay_findings(env, forged)] == ["replay-success"]
    failed = {**rows[0], "success": 0}
    assert _is_claim(submission, failed) and not _is_claim(submission, {**failed, "outcomes": {}})


@pytest.mark.parametrize("more", [0, 8])
def test_pages_show_outcomes_and_details_those_without_a_column(more: int, tmp_path: Path) -> None:
    told = ", ".join(f'"outcome/part {number}": {number}' for number in range(more))
    (tmp_path / "tempted.py").write_text(ENV.replace('"distance": 2.0', f'"distance": 2.0, {told}'))
    evaluate(f"{tmp_path / 'tempted.py'}:Tempted", "random", episodes=12, out=tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()]
    mean = f"{sum(row['outcomes']['injected'] for row in rows) / 12:.3f}"
    write_evaluation_page(tmp_path / "out", tmp_path / "page.html")
    page = Reading((tmp_path / "page.html").read_text("utf8"))
    assert mean in next(row for row in page.rows if row[1:2] == ["injected"])[2]
    assert sum(row[1:2] == [f"part {number}"] for row in page.rows for number in range(more)) == more
    board = build_leaderboard(*read_entries([tmp_path / "out"]))
    content = Reading(leaderboard_page(board))
    head, first = next((head, row) for head, row in zip(content.rows, content.rows[1:], strict=False) if "rank" in head)
    assert [name for name in head if name.startswith("outcome")] == ([] if more else ["outcome injected"])
    assert more or first[head.index("outcome injected")] == mean
    assert "Outcome injected" in content.text and mean in content.text
    assert f"{board.as_json()['tables'][0]['rows'][0]['outcomes']['injected']['value']:.3f}" == mean


def test_names_of_outcomes_are_printed_as_they_are_beside_rows_of_the_same_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tempted.py").write_text(ENV)
    played = evaluate(f"{tmp_path / 'tempted.py'}:Tempted", "random", episodes=2)
    found = Estimate(0.25, 0.0, 0.25, 0.25, 2, 2, "")
    result = replace(played.result.results[0], outcomes={"[/red]": found, "turns": found})
    played = replace(played, result=replace(played.result, results=(result,)))
    console = Console()
    for table in results_tables(played):
        console.print(table)
    shown = capsys.readouterr().out
    assert "[/red]" in shown and "outcome/turns" in shown and shown.count("0.250") >= 2


@pytest.mark.parametrize("number", [1e308, float("inf"), 10**400])
def test_outcomes_whose_mean_may_be_infinite_are_refused(number: Any) -> None:
    with pytest.raises(TypeError, match="outcome/huge"):
        valid_columns({"outcome/huge": number})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcomes": {f"name {number}": 1.0 for number in range(2000)}}, "got 2,00"),
        ({"outcomes": {"x" * 200: 1.0}}, "names of 100 characters"),
        ({"outcomes": {"x": "1"}}, "names and numbers"),
        ({"outcomes": {"x": 1}, "status": "env_error", "fault": "x", "success": 0, "score": 0, "returns": 0,
          "terminated": False}, "it has no outcomes"),
    ],
)  # fmt: skip
def test_outcomes_of_a_submission_are_bounded_and_those_of_broken_episodes_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "tempted.py").write_text(ENV)
    evaluate(f"{tmp_path / 'tempted.py'}:Tempted", "random", episodes=2, out=tmp_path / "out")
    file = tmp_path / "out" / "episodes.jsonl"
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    file.write_text("\n".join(map(json.dumps, ({**first, **changes}, second))))
    submission, problems = read_submission(tmp_path / "out")
    assert submission is None and message in " ".join(each.message for each in problems)
