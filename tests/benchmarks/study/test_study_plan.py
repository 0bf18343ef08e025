"""The plan of a study: what it may say, and that what makes no sense is refused with the way out."""

import os
from pathlib import Path
from typing import Any

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.study.plan import Claim, Job, Side, plan_of, read_plan
from turngym.errors import ConfigError

ARMS = {"ppo": "--algorithm ppo", "grpo": "--algorithm grpo --grpo.clip-high 0.3"}


def test_arms_share_the_common_options_and_every_seed() -> None:
    plan = plan_of("mine", {"seeds": [4, 2], "common": "--env 'a b'", "arms": ARMS, "claims": ["grpo > ppo"]})
    assert plan.jobs == [Job("ppo", 4), Job("grpo", 4), Job("ppo", 2), Job("grpo", 2)]
    assert plan.options(Job("grpo", 2)) == [
        *("--env", "a b", "--algorithm", "grpo", "--grpo.clip-high", "0.3", "--seed", "2")
    ]
    assert plan.claims == (Claim(Side("grpo"), Side("ppo")),) and plan.title == plan.name == "mine"


WHAT_MAKES_NO_SENSE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, r"needs a table \[arms\]"),
    ({"arms": {}}, r"needs a table \[arms\]"),
    ({"arms": ARMS, "seed": 3}, r"no key 'seed'. Did you mean 'seeds'"),
    ({"arms": ARMS, "seeds": 0}, "seeds must be a number from 1"),
    ({"arms": ARMS, "seeds": [1, 1]}, "seeds must be a number from 1"),
    ({"arms": ARMS, "seeds": 10**12}, "seeds must be a number from 1"),
    ({"arms": ARMS, "effect": float("inf")}, "effect must be"),
    ({"arms": ARMS, "seeds": True}, "seeds must be a number from 1"),
    ({"arms": {"../out": ""}}, "an arm names a folder"),
    ({"arms": {"a": "--seed 3"}}, "sets --seed, which the study sets"),
    ({"arms": {"a": "--run-dir=x"}}, "sets --run-dir=x, which the study sets"),
    ({"arms": {"a": "--env 'b"}}, "cannot be split into options"),
    ({"arms": {"a": ["--env"]}}, "must be options as on the command line"),
    ({"arms": ARMS, "claims": ["grpo > ppq"]}, "an arm that is not there. Did you mean 'ppo'"),
    ({"arms": ARMS, "claims": ["grpo"]}, 'a claim is written "better > worse"'),
    ({"arms": ARMS, "claims": 3}, 'a claim is written "better > worse"'),
    ({"arms": ARMS, "effect": 0}, "effect must be"),
    ({"arms": ARMS, "title": 3}, "title must be a string"),
    ({"sweep": {}}, r"\[sweep\] needs lines such as"),
    ({"sweep": 3}, r"\[sweep\] needs lines such as"),
    ({"arms": {}, "sweep": {"iterations": [1]}}, r"needs a table \[arms\]"),
    ({"sweep": {"update.learning_rate": 1e-5}}, "must be a list of strings, numbers or booleans, got 1e-05"),
    ({"sweep": {"update.learning_rate": []}}, "must be a list of strings, numbers or booleans"),
    ({"sweep": {"update.learning_rate": [[1]]}}, "must be a list of strings, numbers or booleans"),
    ({"sweep": {"--iterations": [1]}}, "without dashes in front, got '--iterations'"),
    ({"sweep": {"seed": [1, 2]}}, "sets --seed=1, which the study sets for each run"),
    ({"sweep": {"iterations": [1, 1]}}, "the arm 'iterations@1' of the sweep occurs twice"),
    ({"sweep": {"env": ["x" * 200]}}, "has too long a name: write its arms into"),
    ({"sweep": {name: list(range(100)) for name in ("a", "b", "c", "d")}}, "makes 100,000,000 arms, more than 1,000"),
    ({"arms": {"a": 3}, "sweep": {"iterations": [1]}}, "must be options as on the command line, got 3"),
]


def test_what_makes_no_sense_is_refused() -> None:
    for content, message in WHAT_MAKES_NO_SENSE_IS_REFUSED:
        with pytest.raises(ConfigError, match=message):
            plan_of("mine", content)


def test_a_sweep_makes_an_arm_of_every_combination(tmp_path: Path) -> None:
    (tmp_path / "rates.toml").write_text(
        'common = "--iterations 3"\n'
        'claims = ["ppo+learning_rate@0.001+control@True > ppo+learning_rate@1e-05+control@True"]\n'
        '[arms]\nppo = "--algorithm ppo"\ngrpo = "--algorithm grpo"\n'
        "[sweep]\nupdate.learning_rate = [1e-5, 1e-3]\ncontrol = [true, false]\n"
    )
    plan = read_plan(tmp_path / "rates.toml")
    assert len(plan.arms) == 8 and len(plan.claims) == 1
    found = plan.options(Job("grpo+learning_rate@1e-05+control@False", 2))
    words = "--iterations 3 --algorithm grpo --update.learning-rate=1e-05 --no-control --seed 2"
    assert found == words.split()


def test_a_sweep_alone_starts_from_the_common_options(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("env: turngym/FrozenLake-v0\nalgorithm: reinforce\n")
    common = f"--config {tmp_path / 'run.yaml'}"
    plan = plan_of("mine", {"common": common, "sweep": {"algorithm": ["ppo", "grpo"], "env_options": ["size=4"]}})
    assert list(plan.arms) == ["algorithm@ppo+env_options@size-4", "algorithm@grpo+env_options@size-4"]
    config, *_ = parse_train(plan.options(Job("algorithm@ppo+env_options@size-4", 5)))
    assert (config.env, config.algorithm, config.seed) == ("turngym/FrozenLake-v0", "ppo", 5)
    assert config.env_options == {"size": 4}


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("seeds = ")
    (tmp_path / "deep.toml").write_text("seeds = " + "[" * 100_000)
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("broken.toml", "absent.toml", "deep.toml", "pipe.toml"):
        with pytest.raises(ConfigError, match="cannot be read as the plan of a study"):
            read_plan(tmp_path / name)
    (tmp_path / "huge.toml").write_text("effect = 0x" + "f" * 9_000)
    with pytest.raises(ConfigError, match=r"effect of .*huge\.toml must be a number below"):
        read_plan(tmp_path / "huge.toml")
