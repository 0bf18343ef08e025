"""The plans of training studies: their arms are ones that ``turngym train`` takes, with the settings they promise."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from turngym.benchmarks.cli.options.quickstart import QUICKSTART
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.study.plan import Job, Plan, read_plan
from turngym.envs.webshop.catalogue import procedural
from turngym.trainers.algorithms import build
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


def test_the_study_of_the_quickstart_runs_it_with_ten_seeds_and_without_a_limit_of_time() -> None:
    plan = read_plan(STUDIES / "quickstart.toml")
    assert [job.seed for job in plan.jobs] == list(range(10))
    for job in plan.jobs:
        expected = parse_train([*QUICKSTART, "--max-seconds", "0", "--seed", str(job.seed)])[0]
        assert parse_train(plan.options(job))[0] == expected and expected.control


WORLDS = read_plan(STUDIES / "worlds.toml")


@pytest.mark.parametrize("arm", WORLDS.arms)
def test_a_run_in_a_world_ends_by_its_work_and_has_the_default_settings_of_its_method(arm: str) -> None:
    config = parse_train(WORLDS.options(Job(arm, 1)))[0]
    assert (config.model, config.seed, config.control) == ("embedded", 1, False) and config.warmup.demonstrations > 0
    if arm.startswith(("ask-", "terminal-")):
        assert (config.max_seconds, config.iterations) in ((0, 60), (0, 20), (0, 16), (0, 10), (0, 0))
    else:
        assert config.max_seconds == 7200 and 0 < config.max_environment_turns <= 14_000
    if config.algorithm != "nft":  # those arms imitate successes alone, as no default setting does
        assert config.algorithm_options == parse_train(["--preset", "quickstart"])[0].algorithm_options
    assert config.rollout.prompt.mode == "conversation"  # a page alone does not tell what was done before it
    build(config.algorithm, config.algorithm_options)


def test_the_larger_shop_has_at_least_200_requests_in_its_test_split() -> None:
    config = parse_train(WORLDS.options(Job("webshop-200", 0)))[0]
    shop = procedural(config.env_options["products"], 0)
    assert len({goal.text for product in shop.targets["test"] for goal in shop.goals(product)}) >= 200
