"""Compiled layers: the same update, only while training, and an error where there is nothing to compile."""

import copy
from typing import Any

import pytest
import torch
from small import small_model
from torch import nn

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine import compiling
from turngym.trainers.engine.compiling import CompiledLayers
from turngym.trainers.engine.learner import Learner


def episodes() -> list[Trajectory]:
    draw = torch.Generator().manual_seed(0)
    found = []
    for number, length in enumerate((9, 14, 21, 9)):
        ids = tuple(torch.randint(1, 90, (length,), generator=draw).tolist())
        tokens: dict[str, Any] = {"prompt_ids": ids[:5], "completion_ids": ids[5:], "logprobs": (-4.0,) * (length - 5)}
        turn = Turn("o", "o", "a", reward=float(number % 2), **tokens)
        found.append(Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True))
    return found


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize(("layout", "checkpoints"), [("rows", False), ("packed", True)])
def test_an_update_is_the_same(monkeypatch: pytest.MonkeyPatch, layout: Any, checkpoints: bool) -> None:
    """With every graph captured, but kernels as they are: a compiler is not needed for this."""
    monkeypatch.setattr(compiling, "_BACKEND", "aot_eager")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    weights = []
    for compiles in (False, True):
        model = copy.deepcopy(small_model())
        model.network.double()
        config = UpdateConfig(layout=layout, compile=compiles, gradient_checkpointing=checkpoints, epsilon=1e-3)
        learner = Learner(model, build("grpo", {}), config)
        for number in range(2):
            learner.update(episodes(), number)
        assert all(module._compiled_call_impl is None for module in learner.network.modules())
        weights.append(torch.cat([each.detach().flatten() for each in learner.network.parameters()]))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    assert torch.allclose(weights[0], weights[1], rtol=0, atol=1e-9)
    start = torch.cat([each.detach().double().flatten() for each in small_model().network.parameters()])
    assert not torch.allclose(weights[0], start, rtol=0, atol=1e-6)


def test_a_network_without_decoder_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a Linear has no layers that can be compiled: leave out --update\.compile"):
        CompiledLayers([nn.Linear(2, 2)])


def test_divided_layers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"divided over ranks are not compiled: leave out --update\.compile"):
        UpdateConfig(sharding="full", compile=True)
