"""What rollout workers are asked for, and what is handed to them, without Ray."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model

from turngym.errors import ConfigError, ModelError
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.loop.rollout_workers.cluster import _of_a_worker
from turngym.trainers.loop.rollout_workers.weights import load_packed, packed_files, packed_weights, unpack_files
from turngym.trainers.loop.setup import iteration_specs
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.parts import Part
from turngym.trainers.settings.config import RolloutConfig, SelfPlayConfig, TrainConfig
from turngym.trainers.settings.ray import RayConfig


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": -1}, r"^workers must be a whole number of at least 0, got -1\.$"),
        ({"workers": 1, "gpus": 1.5}, r"^ray\.gpus must be a part of one GPU or a whole number, got 1\.5\.$"),
        ({"workers": 1, "silent_seconds": 0}, r"^silent_seconds must be a number above 0, got 0\.$"),
        ({"address": "auto"}, r"pass --rollout\.ray\.workers as well\.$"),
        ({"workers": 33}, r"^33 rollout workers divide 32 groups: lower ray\.workers, or raise groups\.$"),
    ],
)
def test_settings_that_cannot_hold_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RolloutConfig(ray=RayConfig(**settings))


@pytest.mark.parametrize("settings", [{"journal": True}, {"schedule": "async", "max_staleness": 0}])
def test_workers_keep_no_journal_without_staleness(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"pass --rollout\.schedule async with --rollout\.max-staleness 1 or more"):
        RolloutConfig(ray=RayConfig(workers=2), **settings)


def test_settings_survive_json_and_old_runs_have_no_workers() -> None:
    config = TrainConfig(rollout=RolloutConfig(ray=RayConfig(workers=4, address="auto", gpus=0.5)))
    assert TrainConfig.from_json(config.as_json()) == config
    old = config.as_json()
    del old["rollout"]["ray"]
    assert TrainConfig.from_json(old).rollout.ray.workers == 0


def test_past_selves_are_not_played_by_workers() -> None:
    game = TrainConfig(
        env="turngym/KuhnPoker-v0",
        env_options={},
        rollout=RolloutConfig(ray=RayConfig(workers=2)),
        self_play=SelfPlayConfig(opponents=("self", "past:2")),
    )
    with pytest.raises(ConfigError, match=r"^frozen copies are kept in the learner's process"):
        make_task(game)


@pytest.mark.parametrize("workers", [1, 2, 5, 7])
def test_workers_divide_an_iteration_into_whole_groups_in_order(workers: int) -> None:
    config = TrainConfig(rollout=RolloutConfig(groups=7, group_size=3, ray=RayConfig(workers=workers)))
    specs = iteration_specs(config, 2, 1)
    parts = [Part(index, workers).of(specs) for index in range(workers)]
    assert [spec for part in parts for spec in part] == specs
    assert all(len({spec.group for spec in part}) * 3 == len(part) > 0 for part in parts)
    assert max(map(len, parts)) == _of_a_worker(config).rollout.num_envs


def test_a_worker_sees_the_gpus_that_it_reserved_and_starts_no_workers() -> None:
    rollout = RolloutConfig(ray=RayConfig(workers=2, gpus=1))
    own = _of_a_worker(TrainConfig(device="cuda:3", rollout=rollout))
    assert own.device == "cuda" and own.rollout.ray == RayConfig()
    assert _of_a_worker(TrainConfig(rollout=replace(rollout, sampler="vllm"))).device == "cpu"
    assert _of_a_worker(TrainConfig(device="cuda", rollout=RolloutConfig(ray=RayConfig(workers=2)))).device == "cpu"


def test_adapters_are_handed_over_alone() -> None:
    sender, receiver = (add_adapters(small_model(), 2, seed=0).network for _ in range(2))
    with torch.no_grad():
        for parameter in sender.parameters():
            parameter.add_(1.0)
    packed = packed_weights(sender)
    assert packed and all("lora_" in name for name in packed)
    before = receiver.model.embed_tokens.weight.clone()
    load_packed(receiver, packed)
    assert torch.equal(receiver.model.embed_tokens.weight, before)
    own = dict(receiver.named_parameters())
    assert all(torch.equal(own[name], each) for name, each in sender.named_parameters() if name in packed)


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(ModelError, match=r"of another model: model\.embed_tokens\.weight, "):
        load_packed(small_model(hidden=32).network, packed_weights(small_model().network))


def test_the_files_of_a_model_travel(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    small_model().save(tmp_path / "from")
    unpack_files(packed_files(str(tmp_path / "from")), tmp_path / "to")
    names = sorted(path.name for path in (tmp_path / "from").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "to").iterdir()) and "model.safetensors" in names
    assert all((tmp_path / "from" / name).read_bytes() == (tmp_path / "to" / name).read_bytes() for name in names)
    assert packed_files("HuggingFaceTB/SmolLM2-135M") == {}
