"""The same gradients however a batch is cut, ordered, or split into rows."""

import copy
import random
from collections.abc import Sequence

import pytest
import torch
from small import group_specs, play, small_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.rows import MicroBatch
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.prepared import PreparedBatch

ALGORITHMS = ["grpo", "reinforce", "st_ppo", "ppo+epo", "gmpo", "a3po"]
"""Losses over tokens, turns and groups, with and without a critic, columns and corrected gradients."""
WITH_EXTRAS = {"clip_low": 0.01, "clip_high": 0.01}


def perturbed(model: LanguageModel) -> LanguageModel:
    """Return a copy whose weights moved a little, so that ratios differ from 1 and some tokens are clipped."""
    moved = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in moved.network.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return moved


def gradients(
    model: LanguageModel, trajectories: Sequence[Trajectory], name: str, max_tokens: int = 100_000, merge: bool = True
) -> list[Tensor]:
    policy = copy.deepcopy(model)
    torch.manual_seed(0)
    settings = UpdateConfig(max_grad_norm=0, max_micro_batch_tokens=max_tokens)
    first = "ppo" if name == "st_ppo" else name.partition("+")[0]
    learner = Learner(policy, build(name, {first: WITH_EXTRAS}), settings, merge_rows=merge)
    if learner.critic is not None:
        torch.nn.init.normal_(learner.critic.head.weight, std=0.1)
        learner.critic.double()
    learner.update(trajectories, 0)
    parameters = [*learner.policy_parameters, *learner.other_parameters]
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    assert max(float(e.abs().max()) for e in expected) > 1e-4, "the gradient is zero: the comparison would show nothing"
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)  # the norms of the network compute in float32


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model(dtype=torch.float64)


@pytest.fixture(scope="module", params=["window", "conversation"])
def trajectories(request: pytest.FixtureRequest, model: LanguageModel) -> list[Trajectory]:
    played = play(model, request.param, group_specs(2, 3), max_turns=3)
    draw = random.Random(1)  # an untrained model earns the same everywhere, which would leave nothing to learn
    for trajectory in played:
        for turn in trajectory.turns:
            turn.reward = draw.uniform(-1, 1)
            turn.action_is_valid = draw.random() < 0.8
    return played


@pytest.mark.parametrize(
    ("name", "trajectories"),
    [*((name, "conversation") for name in ALGORITHMS), ("ppo+epo", "window")],
    indirect=["trajectories"],
)
def test_micro_batches_rows_and_the_order_of_episodes_do_not_change_gradients(
    name: str, model: LanguageModel, trajectories: list[Trajectory]
) -> None:
    policy = perturbed(model)
    expected = gradients(policy, trajectories, name)
    assert_same(gradients(policy, trajectories, name, max_tokens=1), expected)
    assert_same(gradients(policy, trajectories, name, merge=False), expected)
    shuffled = list(trajectories)
    random.Random(3).shuffle(shuffled)
    assert_same(gradients(policy, shuffled, name, max_tokens=500), expected)


def test_a_conversation_makes_fewer_rows_than_turns(model: LanguageModel) -> None:
    """Guards the tests above: without merging, the split into rows would be tested against itself."""
    from turngym.trainers.core.rows import build_rows

    conversation = play(model, "conversation")
    turns = sum(len(t.turns) for t in conversation)
    assert len(build_rows(conversation, False)) == len(conversation) < turns
    assert len(build_rows(conversation, False, merge=False)) == turns


@pytest.mark.parametrize("name", ["ppo", "grpo"])
def test_a_faulted_episode_changes_nothing(name: str, model: LanguageModel, trajectories: list[Trajectory]) -> None:
    """A fault shrinks a group; it must not enter loss or statistics."""
    policy = perturbed(model)
    broken = copy.deepcopy(trajectories[0])
    broken.fault = "exception: boom"
    broken.turns[0].reward = 1e6
    expected = gradients(policy, trajectories, name)
    assert_same(gradients(policy, [*trajectories, broken], name), expected)


def test_an_own_weight_for_each_micro_batch_would_be_noticed(
    model: LanguageModel, trajectories: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative oracle: averaging inside of each micro-batch, the common mistake, gives other gradients."""
    policy = perturbed(model)
    expected = gradients(policy, trajectories, "grpo")
    original = PreparedBatch._inputs

    def averaged(self: PreparedBatch, part: MicroBatch, scale: float) -> LossInputs:
        inputs = original(self, part, scale)
        for weight in inputs.weights.values():
            weight /= weight.sum()
        return inputs

    monkeypatch.setattr(PreparedBatch, "_inputs", averaged)
    wrong = gradients(policy, trajectories, "grpo", max_tokens=200)
    assert any(not torch.allclose(a, b, atol=1e-6, rtol=1e-3) for a, b in zip(wrong, expected, strict=True))
