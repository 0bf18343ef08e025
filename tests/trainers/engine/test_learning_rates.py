"""Step sizes: the policy's warms up over its own updates, the critic's over the critic's."""

from pathlib import Path

import pytest
import torch
from small import play, small_model

from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import build
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.loop.checkpoint import load_checkpoint, save_checkpoint

RATE, CRITIC_RATE, WARMUP, PRETRAINED = 1e-3, 1e-2, 4, 3


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    played = play(small_model())
    for number, trajectory in enumerate(played):
        trajectory.turns[-1].reward = float(number % 2)
    return played


def learner_of(name: str = "vc_ppo", **options: object) -> Learner:
    settings = UpdateConfig(learning_rate=RATE, critic_learning_rate=CRITIC_RATE, warmup_updates=WARMUP)
    torch.manual_seed(0)
    return Learner(small_model(), build(name, {name: options}), settings)


def rates(learner: Learner) -> list[float]:
    return [float(group["lr"]) for group in learner.optimizer.param_groups]


def test_the_policys_warm_up_begins_with_its_first_update(trajectories: list[Trajectory]) -> None:
    """While only the critic is trained its own step size rises, and the policy's has not begun to."""
    learner = learner_of(pretrain_iterations=PRETRAINED)
    before = [parameter.clone() for parameter in learner.policy_parameters]
    found = []
    for iteration in range(PRETRAINED + WARMUP + 1):
        learner.update(trajectories, iteration)
        found.append(rates(learner))
        if iteration == PRETRAINED - 1:
            assert all(torch.equal(a, b) for a, b in zip(before, learner.policy_parameters, strict=True))
    of_policy = [rate for rate, _ in found[PRETRAINED:]]
    assert of_policy == pytest.approx([RATE * share for share in (0.25, 0.5, 0.75, 1.0, 1.0)])
    assert [rate for _, rate in found] == pytest.approx([CRITIC_RATE * min(1, (k + 1) / 4) for k in range(8)])
    assert (learner.updates, learner.policy_updates) == (8, 5)


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_without_pretraining_every_update_counts(name: str, trajectories: list[Trajectory]) -> None:
    learner = learner_of(name)
    for iteration in range(2):
        learner.update(trajectories, iteration)
    assert rates(learner) == pytest.approx([RATE / 2, CRITIC_RATE / 2][: len(rates(learner))])


@pytest.mark.parametrize("iterations", [PRETRAINED - 1, PRETRAINED + 1])
def test_a_resumed_run_goes_on_with_its_warm_up(
    iterations: int, tmp_path: Path, trajectories: list[Trajectory]
) -> None:
    learner, resumed = (learner_of(pretrain_iterations=PRETRAINED) for _ in range(2))
    for iteration in range(iterations):
        learner.update(trajectories, iteration)
    load_checkpoint(save_checkpoint(tmp_path, learner, iterations, {}), resumed)
    for each in (learner, resumed):
        for iteration in range(iterations, iterations + 2):
            each.update(trajectories, iteration)
    assert rates(resumed) == rates(learner)
    for a, b in zip(learner.policy_parameters, resumed.policy_parameters, strict=True):
        assert torch.equal(a, b)
