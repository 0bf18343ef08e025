"""Run folders keep every option, so that a default that changes later changes no old run."""

import dataclasses
import json
from typing import Any

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.trainers.algorithms import build
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.stored_config import config_from_store, config_to_store, options_of_0_1_0

COMPOSED = TrainConfig(algorithm="grpo+epo", algorithm_options={"epo": {"alpha": 0.3}})


def stored(config: TrainConfig) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(config_to_store(config)))
    return found


@pytest.mark.parametrize("config", [TrainConfig(seed=3), COMPOSED, TrainConfig(algorithm="ppo")])
def test_settings_come_back_as_they_were(config: TrainConfig) -> None:
    assert config_from_store(stored(config)) == config


def test_a_run_keeps_the_defaults_of_its_time() -> None:
    content = stored(COMPOSED)
    content["algorithm_defaults"]["grpo"]["clip_high"] = 0.7
    content["algorithm_defaults"]["epo"]["alpha"] = 0.9  # the run chose another value
    content["algorithm_defaults"]["grpo"]["an_option_of_then"] = 1
    found = config_from_store(content)
    assert found.algorithm_options == {"grpo": {"clip_high": 0.7}, "epo": {"alpha": 0.3}}
    build(found.algorithm, found.algorithm_options)


def test_the_quickstart_trains_with_the_settings_that_it_had_in_0_1_0() -> None:
    assert parse_train([])[0].algorithm_options == options_of_0_1_0("gigpo")


def test_folders_that_name_no_defaults_have_those_of_0_1_0() -> None:
    content = stored(TrainConfig(algorithm="gigpo"))
    del content["algorithm_defaults"]
    found = config_from_store(content)
    config = build("gigpo", found.algorithm_options).config
    assert (config.entropy_coef, config.dual_clip, config.invalid_penalty) == (0.01, 3.0, 0.1)
    assert dataclasses.replace(found, algorithm_options={}) == TrainConfig(algorithm="gigpo")
