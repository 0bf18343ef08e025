"""On another device than the CPU: rollouts, updates of every layout and method, supervised learning.

Run by ``test_simulated_device.py``.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from algorithm_batches import METHODS
from layout_batches import exact_norms, token_episodes, wide_model
from rank_methods import OPTIONS
from simulated_device import SimulatedTensor, device, waits
from small import group_specs, play, small_model

from turngym.agents.models.generate import generate
from turngym.agents.models.kv_cache.sessions import Sessions
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.update_config import LayoutName, UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.teachers import Teaching
from turngym.trainers.loop.sft import SupervisedConfig, SupervisedLearner

torch.set_num_threads(1)


def moved(model: LanguageModel) -> LanguageModel:
    """The model on the simulated device."""
    torch.nn.Module.to(model.network, device())
    model.network.tie_weights()  # moving to a backend in Python unties shared weights
    assert all(isinstance(each, SimulatedTensor) for each in model.network.parameters())
    return model


def test_tensors_of_two_devices_are_not_mixed_and_waits_are_counted() -> None:
    layer = torch.nn.Linear(3, 2).to(device())
    with pytest.raises(RuntimeError, match="same device"):
        layer(torch.ones(1, 3))
    with waits() as found:
        assert layer(torch.zeros(1, 3, device=device())).sum().isfinite().item()
    assert sum(found.values()) == 1


def test_episodes_are_those_of_the_cpu() -> None:
    played = [play(model, specs=group_specs()) for model in (small_model(layers=1), moved(small_model(layers=1)))]
    texts = [[turn.completion_ids for each in found for turn in each.turns] for found in played]
    assert texts[0] == texts[1] and len(texts[0]) > 8


def updated(model: LanguageModel, name: str, episodes: list[Trajectory], **options: Any) -> dict[str, float]:
    """The metrics of an update."""
    torch.manual_seed(0)
    algorithm = build(name, OPTIONS.get(name, {}))
    teaching = Teaching(teacher_of(model)) if Need.TEACHER_LOGPROBS in algorithm.needs else None
    config = replace(UpdateConfig(minibatches=2), **options)
    return Learner(model, algorithm, config, teaching=teaching).update(episodes, 0)


def teacher_of(model: LanguageModel) -> LanguageModel:
    """Another model on the same device."""
    teacher = wide_model(layers=1)
    with torch.no_grad():
        for parameter in teacher.network.parameters():
            parameter.mul_(1.1)
    return moved(teacher) if model.network.device.type != "cpu" else teacher


@pytest.fixture(scope="module")
def episodes() -> list[Trajectory]:
    return token_episodes(wide_model(layers=1))


@pytest.mark.parametrize(("layout", "checkpointing"), [("rows", False), ("packed", True), ("tree", False)])
def test_updates_are_those_of_the_cpu(
    episodes: list[Trajectory], layout: LayoutName, checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a critic and a reference policy."""
    exact_norms(monkeypatch)
    options: dict[str, Any] = {"layout": layout, "gradient_checkpointing": checkpointing}
    here, there = wide_model(layers=1), moved(wide_model(layers=1))
    expected = updated(here, "turn_ppo", episodes, **options)
    assert updated(there, "turn_ppo", episodes, **options) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for name, weight in here.network.state_dict().items():
        torch.testing.assert_close(there.network.state_dict()[name].cpu(), weight, rtol=1e-9, atol=1e-9)


_OF_UPDATE = 10
"""Waits of an update that do not depend on its micro-batches: norms, statistics, a look at the weights."""


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("grpo", "packed"),
        *(pytest.param(name, "rows", marks=pytest.mark.integration) for name in ("grpo", "turn_ppo")),
    ],
)
def test_a_micro_batch_waits_once(name: str, layout: LayoutName, episodes: list[Trajectory]) -> None:
    """For its loss. In rows, transformers looks at the mask of every network twice."""
    config = UpdateConfig(layout=layout, max_micro_batch_tokens=24)
    learner = Learner(moved(wide_model(layers=1)), build(name, OPTIONS.get(name, {})), config)
    with waits() as preparing:
        count = len(list(learner.prepare(episodes[:5]).micro_batches()))
    with waits() as both:
        learner.update(episodes[:5], 0)
    masks = 2 * (1 + (name == "turn_ppo")) if layout == "rows" else 0
    assert count >= 3
    assert sum(both.values()) - sum(preparing.values()) <= count + _OF_UPDATE  # preparing made the passes' masks too
    assert sum(preparing.values()) <= 2 * masks * count + _OF_UPDATE


@pytest.mark.parametrize("keeps", [False, True])
def test_a_decode_step_waits_once(keeps: bool) -> None:
    model, steps = moved(small_model(layers=1)), 12
    draws = [np.random.default_rng(seed).random(steps) for seed in range(6)]
    sessions = Sessions(model.network, frozenset(), 4000)
    with waits() as found:
        prompts, sampling = [[7, 8, 9 + seed] for seed in range(6)], Sampling(max_new_tokens=steps)
        if keeps:
            completions = sessions.complete(prompts, draws, sampling)
        else:
            completions = generate(model.network, prompts, draws, sampling, frozenset())
    assert sum(found.values()) == steps and all(len(each.ids) == steps for each in completions)


@pytest.mark.integration
@pytest.mark.parametrize("name", METHODS)
def test_every_method_updates_as_on_the_cpu(
    name: str, episodes: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact_norms(monkeypatch)
    found, expected = (
        updated(model, name, episodes, minibatches=1) for model in (moved(wide_model(layers=1)), wide_model(layers=1))
    )
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_and_masters(dtype: torch.dtype, episodes: list[Trajectory]) -> None:
    model = small_model(layers=1)
    torch.nn.Module.to(model.network, dtype)
    found = updated(moved(model), "turn_ppo", episodes)
    if dtype is torch.float16:  # the first loss scale is too large, so that nothing is updated
        assert found["train/loss_scale"] < 65_536
    else:
        assert found["train/updates"] == 2 and 0 < found["train/grad_norm"] < float("inf")


def test_supervised_learning_is_that_of_the_cpu(episodes: list[Trajectory], monkeypatch: pytest.MonkeyPatch) -> None:
    exact_norms(monkeypatch)
    losses = []
    for model in (wide_model(layers=1), moved(wide_model(layers=1))):
        learner = SupervisedLearner(model.network, episodes, SupervisedConfig(observation_weight=0.5, batch_size=4), 0)
        losses.append([learner.run_epoch(), learner.run_epoch()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-9) and losses[0][1] < losses[0][0]
