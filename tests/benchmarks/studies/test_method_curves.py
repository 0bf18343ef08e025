"""The study of all methods on one task: its arms, its page, and a run that is kept and not repeated."""

import json
from pathlib import Path

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.studies.harness import RESULTS
from turngym.benchmarks.studies.learning.method_page import page, picture
from turngym.benchmarks.studies.learning.methods import run_missing
from turngym.benchmarks.study.plan import Job, plan_of, read_plan
from turngym.trainers.algorithms import ALGORITHMS

PLAN = read_plan(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning" / "methods.toml")
SEVERAL_PLAYERS = {"dr_mas", "hierarchical_grpo", "m_grpo", "mappo", "mmd", "rae"}


def test_there_is_an_arm_for_each_method_of_a_single_player_with_equal_length() -> None:
    alone = {arm for arm in PLAN.arms if "-" not in arm}
    assert alone == ALGORITHMS.keys() - SEVERAL_PLAYERS, "give a new method an arm in methods.toml"
    for arm, words in PLAN.arms.items():
        assert arm.partition("-")[0] in words[words.index("--algorithm") + 1].split("+")
    for arm in ("grpo", "remax", "sdpo", "archer"):
        config = parse_train(PLAN.options(Job(arm, 1)))[0]
        assert (config.iterations, config.max_seconds, config.control) == (40, 0, False)
        assert config.warmup.demonstrations == 30


def test_page_and_picture_are_those_of_the_runs() -> None:
    content = json.loads((RESULTS / "methods.json").read_text("utf8"))
    assert content["runs"].keys() <= PLAN.arms.keys()
    why = "run: python benchmarks/studies/learning/methods.py --page"
    assert (RESULTS / "methods.md").read_text("utf8") == page(content), why
    assert (RESULTS / "methods.svg").read_text("utf8") == picture(content["runs"]), why


@pytest.mark.integration
def test_a_finished_run_is_kept_and_not_run_again(tmp_path: Path) -> None:
    options = (
        "--iterations 1 --no-control --evaluation.every 0 --evaluation.episodes 4 --rollout.groups 2 --warmup.epochs 1"
    )
    plan = plan_of("tiny", {"seeds": [3], "arms": {"grpo": f"{options} --algorithm grpo", "other": "--no-such-option"}})
    out = tmp_path / "tiny.json"
    run_missing(plan, plan.jobs, tmp_path / "runs", out)
    content = json.loads(out.read_text("utf8"))
    run = content["runs"]["grpo"]["3"]
    assert content["runs"].keys() == {"grpo"} and len(run["curve"]) == 1 and run["episodes"] == 4
    assert (tmp_path / "runs" / "other-seed3.log").exists()
    (tmp_path / "runs" / "grpo-seed3").rename(tmp_path / "elsewhere")
    run_missing(plan, plan.jobs[:1], tmp_path / "runs", out)
    assert json.loads(out.read_text("utf8")) == content and not (tmp_path / "runs" / "grpo-seed3").exists()
