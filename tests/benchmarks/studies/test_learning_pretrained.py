"""The plans of a pretrained model on a CPU: their arms are ones that train takes, with a control."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.study.plan import Job, Plan, read_plan
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.settings.config import TrainConfig

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "benchmarks" / "studies" / "learning"
PLANS = [read_plan(STUDIES / f"{name}.toml") for name in ("pretrained", "pretrained_again")]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_arms_are_of_one_method_and_end_by_iterations(plan: Plan) -> None:
    configs = [parse_train(plan.options(Job(arm, 0)))[0] for arm in plan.arms]
    assert len({config.env for config in configs}) == {"pretrained": 3, "pretrained_again": 2}[plan.name]
    for config in configs:
        assert config.control and config.warmup.models == "any" and config.max_seconds == 0
        assert config.algorithm == configs[0].algorithm
        assert _common(plan, config) == _common(plan, configs[0])
        precision = "fp32" if config.env == "turngym/MathPython-v0" else "bf16"
        assert config.threads == 1 and config.precision == precision and config.lora_rank == 16
    for arm in plan.arms:
        claims = set(map(str, plan.part([arm]).claims))
        assert claims == {str(claim) for claim in plan.claims if str(claim).startswith((f"{arm} ", f"{arm}:"))}
        assert {f"{arm} > {arm}:control-sampled", f"{arm} > {arm}:warmup-sampled"} <= claims


def _common(plan: Plan, config: TrainConfig) -> UpdateConfig:
    """Return the settings of updates without those that an arm of the plan may have for itself."""
    minibatches = config.update.minibatches if plan.name == "pretrained" else 1
    return replace(config.update, learning_rate=1e-4, minibatches=minibatches)


def test_fresh_seeds_run_with_the_settings_of_the_first_ones_and_with_no_seed_of_theirs() -> None:
    first, again = PLANS
    assert not set(first.seeds) & set(again.seeds) and not first.arms.keys() & again.arms.keys()
    numbers = parse_train(first.options(Job("numbers", 7)))[0]
    assert parse_train(again.options(Job("numbers-fresh", 7)))[0] == numbers


def test_the_command_of_the_laptop_page_is_an_arm_without_its_control() -> None:
    page = (ROOT / "docs" / "how-to" / "laptop.md").read_text("utf8")
    (command,) = re.findall(r"^turngym train (.*?[^\\])\n", page, re.MULTILINE | re.DOTALL)
    shown = parse_train(shlex.split(command.replace("\\\n", " ")))[0]
    arm = parse_train(PLANS[0].options(Job("numbers", 0)))[0]
    assert shown == replace(arm, seed=shown.seed, control=shown.control, checkpoint_every=shown.checkpoint_every)
