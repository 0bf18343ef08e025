"""Settings with new names: files and command lines of before are read."""

import json

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.settings.config import TrainConfig, config_from_json

OF_BEFORE = ("beta1", "beta2", "epsilon", "schedule", "optimizer", "decay", "offload")


def before(dtype: str = "float32", momentum: float = 0.9, weight_decay: float = 0.0) -> TrainConfig:
    """Read the settings of a run as versions before this one wrote them."""
    settings = json.loads(json.dumps(TrainConfig().as_json()))
    del settings["precision"]
    settings["dtype"] = dtype
    settings["update"] = {key: value for key, value in settings["update"].items() if key not in OF_BEFORE}
    settings["update"] |= {"momentum": momentum, "weight_decay": weight_decay}
    return config_from_json(settings)


def test_a_run_folder_of_before_is_read_as_it_was_trained() -> None:
    assert before() == TrainConfig()
    assert before("bfloat16").precision == "bf16"
    assert before("float16").precision == "fp16"
    update = before(momentum=0.0, weight_decay=0.1).update
    assert (update.beta1, update.beta2, update.weight_decay, update.decay) == (0.0, 0.99, 0.1, "all")
    assert UpdateConfig().decay == "matrices"


@pytest.mark.parametrize("words", [["--update.momentum", "0.5"], ["--update.momentum=0.5"]])
def test_options_of_before_work_with_a_warning(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_train(words)[0].update.beta1 == 0.5
    assert capsys.readouterr().err == "warning: --update.momentum is called --update.beta1 now.\n"
    assert parse_train(["--dtype", "bfloat16", "--lora-rank", "2"])[0].precision == "bf16"
    assert "--dtype is called --precision now" in capsys.readouterr().err
    assert parse_train(["--precision", "bf16", "--update.beta1", "0"])[0].precision == "bf16"
    assert not capsys.readouterr().err
