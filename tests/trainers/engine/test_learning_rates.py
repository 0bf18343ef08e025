"""Step sizes: the policy's warms up over its own updates, the critic's over the critic's."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small import play, small_model

from turngym.agents.models.weights import WeightsWatch
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.optimizer import adamw, is_fusible, make_optimizer, parameter_groups
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint

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


def scheduled(schedule: str, iterations: int = 6, **options: object) -> Learner:
    settings: dict[str, Any] = {"schedule": schedule, "warmup_updates": 2, "minibatches": 2}
    config = UpdateConfig(learning_rate=RATE, critic_learning_rate=CRITIC_RATE, **settings)
    torch.manual_seed(0)
    method = build("vc_ppo", {"vc_ppo": {"pretrain_iterations": 2, **options}})
    return Learner(small_model(), method, config, iterations=iterations)


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        ("linear", [0.5, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        ("cosine", [0.5, 1, *(0.5 + 0.5 * math.cos(math.pi * k / 6) for k in range(6))]),
        ("constant", [0.5, *[1] * 7]),
    ],
)
def test_step_sizes_fall_until_the_end_of_the_run(
    schedule: str, shares: list[float], tmp_path: Path, trajectories: list[Trajectory]
) -> None:
    """The policy's over the 4 iterations of 2 updates in which it is trained, the critic's over all 6; also resumed."""
    learner, found = scheduled(schedule), list[tuple[float, float]]()
    for iteration in range(6):
        if iteration == 4:
            resumed = scheduled(schedule)
            load_checkpoint(save_checkpoint(tmp_path, learner, iteration, {}), resumed)
            learner = resumed
        step = learner.optimizer.step
        learner.optimizer.step = lambda step=step, of=learner: (found.append(tuple(rates(of))), step())  # type: ignore
        learner.update(trajectories, iteration)
        learner.optimizer.step = step  # type: ignore[method-assign]
    assert [rate for rate, _ in found[4:]] == pytest.approx([RATE * share for share in shares])
    if schedule == "linear":
        falling = [CRITIC_RATE * share / 10 for share in range(10, 0, -1)]
        assert [rate for _, rate in found] == pytest.approx([CRITIC_RATE / 2, CRITIC_RATE, *falling])


def test_a_schedule_that_falls_needs_the_length_of_the_run() -> None:
    with pytest.raises(ConfigError, match="schedule linear falls until the last update: pass iterations"):
        scheduled("linear", iterations=0)


def test_norms_and_biases_do_not_decay_unless_all_weights_do() -> None:
    for decay, expected in (("matrices", {(True, 0.1), (False, 0.0)}), ("all", {(True, 0.1), (False, 0.1)})):
        settings = UpdateConfig(weight_decay=0.1, decay=decay)  # type: ignore[arg-type]
        learner = Learner(small_model(), build("ppo"), settings)
        found = {
            (p.ndim >= 2, group["weight_decay"]) for group in learner.optimizer.param_groups for p in group["params"]
        }
        assert found == expected
        trained = [*learner.policy_parameters, *learner.other_parameters]
        grouped = [p for group in learner.optimizer.param_groups for p in group["params"]]
        assert sorted(map(id, grouped)) == sorted(map(id, trained))


def test_the_optimiser_takes_its_settings() -> None:
    learner = Learner(small_model(), build("grpo"), UpdateConfig(beta1=0.5, beta2=0.95, epsilon=1e-5))
    [group] = learner.optimizer.param_groups
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.5, 0.95), 1e-5, 0.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "step"}, "schedule must be one of 'constant', 'linear', 'cosine', got 'step'"),
        ({"optimizer": "sgd"}, "optimizer must be one of 'adamw', 'adamw_8bit', got 'sgd'"),
        ({"decay": "none"}, "decay must be one of 'matrices', 'all', got 'none'"),
        ({"beta2": 1.0}, "beta2 must be a number of at least 0 and below 1, got 1.0"),
        ({"epsilon": 0.0}, "epsilon must be a number above 0 and below 1, got 0.0"),
        ({"warmup_updates": -1}, "warmup_updates must be a whole number of at least 0, got -1"),
    ],
)
def test_wrong_settings_of_the_optimiser_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        UpdateConfig(**settings)


def test_one_kernel_updates_all_parameters_as_single_operations_do() -> None:
    """Within rounding, over steps with decay; a parameter on a device without such a kernel takes single operations."""
    torch.manual_seed(0)
    weights = [torch.randn(7, 5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)]
    fused, single = ([torch.nn.Parameter(each.clone()) for each in weights] for _ in range(2))
    config = UpdateConfig(learning_rate=0.1, weight_decay=0.1)
    optimizer = make_optimizer(parameter_groups(fused, [], config), config)
    assert all(group["fused"] for group in optimizer.param_groups)
    groups = parameter_groups(single, [], config)
    plain = torch.optim.AdamW(groups, betas=(config.beta1, config.beta2), eps=config.epsilon, fused=False)
    for _ in range(5):
        for one, other in zip(fused, single, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        optimizer.step()
        plain.step()
    for one, other, start in zip(fused, single, weights, strict=True):
        torch.testing.assert_close(one, other, atol=1e-14, rtol=1e-14)
        assert float((one - start).abs().max().detach()) > 0.1
    assert not is_fusible([torch.nn.Parameter(torch.zeros(2, device="meta"))])


def test_a_fused_step_is_seen_by_those_who_keep_what_they_computed() -> None:
    """The fused kernel does not increment versions, so samplers would reuse keys and values of old weights."""
    model = small_model()
    watch = WeightsWatch()
    assert watch.has_changed(model.network) and not watch.has_changed(model.network)
    trained = list(model.network.parameters())
    optimizer = make_optimizer([{"params": trained}], UpdateConfig())
    for parameter in trained:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert watch.has_changed(model.network)


def test_own_loops_pass_parameters_as_torch_takes_them() -> None:
    network = torch.nn.Linear(2, 2)
    weight = network.weight
    for params in (network.parameters(), [{"params": network.parameters()}], [{"params": weight}]):
        optimizer = adamw(params, lr=0.1)
        later = torch.nn.Parameter(torch.ones(2))
        optimizer.add_param_group({"params": [later]})
        before = weight.detach().clone()
        (network(torch.ones(1, 2)).sum() + later.sum()).backward()
        versions = weight._version, later._version
        optimizer.step()
        assert not torch.equal(weight, before)
        assert weight._version > versions[0] and later._version > versions[1]
    with pytest.raises(ValueError, match="empty parameter list"):
        adamw([])
