"""The study of a pretrained model on a CPU: its arms are ones that train takes, with a control; a picture."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import pretrained

from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.study.plan import Job, read_plan


def test_arms_are_of_one_method_and_end_by_iterations() -> None:
    plan = read_plan(pretrained.PLAN)
    configs = [parse_train(plan.options(Job(arm, 0)))[0] for arm in plan.arms]
    assert len({config.env for config in configs}) == 3
    for config in configs:
        assert config.control and config.warmup.models == "any" and config.max_seconds == 0
        assert config.algorithm == configs[0].algorithm
        assert replace(config.update, learning_rate=1e-4) == replace(configs[0].update, learning_rate=1e-4)
        assert config.threads == 1 and config.precision == "bf16" and config.lora_rank == 16
    for arm in plan.arms:
        assert {f"{arm} > {arm}:control-sampled", f"{arm} > {arm}:warmup-sampled"} <= set(map(str, plan.claims))


def test_the_picture_shows_every_run(tmp_path: Path) -> None:
    success = {"success": {"value": 0.5}}
    run = {"evaluations": {f"{stage}-sampled": success for stage in pretrained.STAGES}}
    pretrained.draw({"lake": [run, run], "numbers": [run]}, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert pretrained.finished(read_plan(pretrained.PLAN), tmp_path) == {"numbers": [], "arithmetic": [], "lake": []}
