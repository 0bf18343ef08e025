"""What runs on which GPU, chosen by counts that are given: no GPU is needed."""

import importlib.util
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.vllm.config import VllmConfig
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.engine.ranks import SINGLE
from turngym.trainers.loop import setup
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sampling.served_rollouts import server_devices
from turngym.trainers.loop.sampling.vllm_rollouts import vllm_rollouts
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.rollout import RolloutConfig

SERVED = RolloutConfig(sampler="vllm-server", start_servers=1)


def chosen(monkeypatch: pytest.MonkeyPatch, place: str = "cuda", installed: bool = True, **changes: Any) -> str:
    """What ``auto`` samples with, on a device where vLLM is installed or not."""
    find = importlib.util.find_spec
    monkeypatch.setattr(setup, "chosen_device", lambda name: torch.device(place))
    monkeypatch.setattr(setup, "sees", lambda source: source == "a model that sees")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: (object() if installed else None) if name == "vllm" else find(name)
    )
    config = replace(TrainConfig(model="Qwen/Qwen3-0.6B"), **changes)
    return setup.chosen_sampler(config, build(config.algorithm, config.algorithm_options), SINGLE)


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("vllm", {}),
        ("transformers", {"installed": False}),
        ("transformers", {"place": "cpu"}),
        ("transformers", {"place": "cuda:1"}),
        ("transformers", {"model": "embedded"}),
        ("transformers", {"model": "a model that sees"}),
        ("transformers", {"algorithm": "arpo"}),
        ("transformers", {"rollout": RolloutConfig(schedule="async")}),
        ("transformers", {"rollout": RolloutConfig(refresh_every=4)}),
        ("transformers", {"rollout": RolloutConfig(cache_tokens=100_000)}),
        ("transformers", {"rollout": RolloutConfig(sampler="transformers")}),
        ("vllm-server", {"rollout": SERVED}),
    ],
)
def test_vllm_samples_where_it_can(monkeypatch: pytest.MonkeyPatch, expected: str, changes: dict[str, Any]) -> None:
    assert chosen(monkeypatch, **changes) == expected


def test_vllm_in_this_process_is_refused_on_a_second_gpu() -> None:
    there: Any = SimpleNamespace(network=SimpleNamespace(device=torch.device("cuda:1")))
    with (
        pytest.raises(ConfigError, match=r"the policy is on cuda:1: start it with CUDA_VISIBLE_DEVICES=1"),
        vllm_rollouts(there, "", VllmConfig()),
    ):
        pass


@pytest.mark.parametrize(
    ("served", "needed", "own", "expected"),
    [
        (ServedConfig(), 1, "cuda:0", ("1",)),
        (ServedConfig(), 2, "cuda:1", ("0", "GPU-7")),
        (ServedConfig(), 3, "cuda:1", ()),  # too few others
        (ServedConfig(sleep=1), 1, "cuda:1", ("1",)),
        (ServedConfig(sync="ipc"), 1, "cuda:2", ("GPU-7",)),
        (ServedConfig(devices=(5,)), 1, "cuda:1", (5,)),
        (ServedConfig(), 1, "cpu", ()),
    ],
)
def test_servers_leave_the_gpu_of_the_policy_alone(
    served: ServedConfig, needed: int, own: str, expected: tuple[int | str, ...]
) -> None:
    assert server_devices(served, needed, torch.device(own), ["0", "1", "GPU-7"]) == expected


def test_an_old_torch_is_refused_for_divided_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(torch, "__version__", "2.8.1+cu128")
    config = TrainConfig()
    with pytest.raises(ConfigError, match=r"needs torch 2\.9 or later, and 2\.8\.1\+cu128 is installed"):
        train(replace(config, update=replace(config.update, sharding="full")), tmp_path / "run")
    assert not (tmp_path / "run").exists()
