"""Adapters on weights of 8 and 4 bits; without bitsandbytes they are refused before anything is loaded."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import play, small_model
from test_adapters import logprobs, moved
from torch import Tensor

from turngym.agents.models.loading import LanguageModel, load_model
from turngym.errors import ConfigError, MissingExtra
from turngym.trainers.algorithms import build
from turngym.trainers.engine.adapters import add_adapters, without_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from turngym.trainers.loop.checkpoints.exporting import export_model
from turngym.trainers.loop.job import train
from turngym.trainers.settings.config import TrainConfig

FORMATS = ("int8", "nf4")
is_installed = importlib.util.find_spec("bitsandbytes") is not None
needs_package = pytest.mark.skipif(not is_installed, reason="bitsandbytes is not installed")
quiet = pytest.mark.filterwarnings("ignore")  # of the package


@pytest.mark.skipif(is_installed, reason="bitsandbytes is installed")
@pytest.mark.parametrize("quantize", FORMATS)
def test_without_the_package_it_is_named_before_anything_is_loaded(quantize: str, tmp_path: Path) -> None:
    config = TrainConfig.from_json({**TrainConfig(lora_rank=2).as_json(), "quantize": quantize})
    with pytest.raises(MissingExtra, match=rf"weights in {quantize} need the package bitsandbytes, which is not"):
        train(replace(config, model="/nowhere"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(MissingExtra, match="pip install bitsandbytes, or pass --quantize none"):
        load_model("/nowhere", quantize=quantize)


def test_quantized_weights_are_for_adapters_alone() -> None:
    with pytest.raises(ConfigError, match="weights in nf4 are not trained themselves: pass --lora-rank as well"):
        TrainConfig(quantize="nf4")
    with pytest.raises(ConfigError, match=r"quantize must be one of none, int8, nf4, got 'int4'"):
        load_model("/nowhere", quantize="int4")


def quantized(quantize: str, folder: Path) -> LanguageModel:
    if not (folder / "config.json").exists():
        small_model(hidden=64).save(folder)
    return load_model(str(folder), "float32", "cpu", quantize=quantize)


def trained_weights(learner: Learner) -> list[Tensor]:
    return [*learner.policy_parameters, *learner.other_parameters]


@quiet
@needs_package
@pytest.mark.parametrize("quantize", FORMATS)
def test_adapters_are_trained_on_quantized_weights_and_resumed(quantize: str, tmp_path: Path) -> None:
    """With a critic and a reference policy on the same weights; the checkpoint holds none of them."""
    trajectories = play(small_model(hidden=64))
    for number, trajectory in enumerate(trajectories):
        for turn in trajectory.turns:
            turn.reward = float(number % 2)

    def learner() -> Learner:
        torch.manual_seed(0)
        model = add_adapters(quantized(quantize, tmp_path / "model"), 2, seed=0)
        method = build("turn_ppo", {"turn_ppo": {"kl_coef": 0.1}})
        return Learner(model, method, UpdateConfig(learning_rate=1e-2, critic_learning_rate=1e-2))

    first, second = learner(), learner()
    before = [each.clone() for each in trained_weights(first)]
    first.hold_back_sampler()
    second.hold_back_sampler()
    assert first.update(trajectories, 0)["policy/kl_reference"] == 0.0
    assert any(not torch.equal(*pair) for pair in zip(before, trained_weights(first), strict=True))
    path = save_checkpoint(tmp_path / "checkpoints", first, 1, {})
    assert (path / "policy.safetensors").stat().st_size < (tmp_path / "model" / "model.safetensors").stat().st_size / 5
    load_checkpoint(path, second)
    for each in (first, second):
        each.update(trajectories, 1)
    for mine, its in zip(trained_weights(first), trained_weights(second), strict=True):
        assert torch.equal(mine, its)


@quiet
@needs_package
@pytest.mark.parametrize("quantize", FORMATS)
def test_merged_weights_are_those_that_the_adapters_were_trained_on(quantize: str, tmp_path: Path) -> None:
    trajectories = play(small_model(hidden=64))
    model = moved(add_adapters(quantized(quantize, tmp_path / "model"), 2, seed=0))
    found = logprobs(model.network, trajectories)
    without_adapters(model).save(tmp_path / "merged")
    merged = load_model(str(tmp_path / "merged"), "float32", "cpu")
    # int8 rounds the inputs of every layer too, and nf4 multiplies in bfloat16 on a CPU
    torch.testing.assert_close(logprobs(merged.network, trajectories), found, atol=0.2, rtol=0)
    # on a CPU nf4 rounds the scales of blocks when it reorders weights; otherwise the model itself is as it was
    torch.testing.assert_close(logprobs(model.network, trajectories), found, atol=0.05, rtol=0)


@quiet
@needs_package
@pytest.mark.parametrize("quantize", FORMATS)
def test_a_run_on_quantized_weights_ends_with_a_model_and_is_exported(quantize: str, tmp_path: Path) -> None:
    from test_exporting import FEW, weights

    embedded = replace(FEW.embedded, hidden_size=64)
    config = TrainConfig.from_json({**replace(FEW, lora_rank=2, embedded=embedded).as_json(), "quantize": quantize})
    assert train(config, tmp_path / "run").finished
    found = export_model(tmp_path / "run", tmp_path / "merged")
    before, after = weights(tmp_path / "run" / "model"), weights(found.folder)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, atol=5e-3, rtol=0)
    assert export_model(tmp_path / "run", tmp_path / "adapters", adapters=True).base
