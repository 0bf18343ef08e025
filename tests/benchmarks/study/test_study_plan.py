"""The plan of a study: what it may say, and that what makes no sense is refused with the way out."""

import os
from pathlib import Path
from typing import Any

import pytest

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
    ({"arms": ARMS, "title": 3}, "title must be a text"),
]


def test_what_makes_no_sense_is_refused() -> None:
    for content, message in WHAT_MAKES_NO_SENSE_IS_REFUSED:
        with pytest.raises(ConfigError, match=message):
            plan_of("mine", content)


def test_a_file_that_is_no_plan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("seeds = ")
    (tmp_path / "deep.toml").write_text("seeds = " + "[" * 100_000)
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("broken.toml", "absent.toml", "deep.toml", "pipe.toml"):
        with pytest.raises(ConfigError, match="cannot be read as the plan of a study"):
            read_plan(tmp_path / name)
