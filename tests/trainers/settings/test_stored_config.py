"""Run folders keep every option, so that a default that changes later changes no old run."""

import json
from typing import Any

import pytest

from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.records.run_folder import config_from_store, config_to_store
from turngym.trainers.settings.config import TrainConfig

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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"control": 3}, "control of the training configuration must be True or False, got 3."),
        ({"env_options": 3}, "env_options of the training configuration must be a mapping, got 3."),
        ({"threads": "a"}, r"threads of the training configuration must be a whole number in \[0, 1024\], got 'a'."),
        ({"rollout": {"promt": 3}}, r"has no option 'rollout.promt'. Did you mean 'prompt'\?"),
        ({"rollout": {"vllm": {"dtype": "int4"}}}, "rollout.vllm.dtype of the training configuration must be one of"),
        ({"seeed": 3}, r"the training configuration has no option 'seeed'. Did you mean 'seed'\?"),
    ],
)
def test_a_wrong_value_in_a_file_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config_from_store({**stored(TrainConfig()), **wrong})
