"""Outcomes that an environment declares by columns: in rows, results and tables, and checked by verify."""

import json
from pathlib import Path

import gymnasium

from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks.cli.terminal.evaluation import results_tables
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.verification.numbers import number_findings
from turngym.benchmarks.verification.replay import replay_findings
from turngym.envs.own import find_spec

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
