"""Magnetic mirror descent: its closed form, where it converges, its gradient off the policy, a magnet that follows."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers import functional as F
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Algorithm, LossInputs, Need
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint

torch.set_num_threads(1)

WINS = tensor([[0.5, 0.9, 0.2], [0.1, 0.5, 0.8], [0.8, 0.2, 0.5]], dtype=torch.float64)
"""Chance that the action of the row wins against that of the column."""
MAGNET = tensor([0.6, 0.3, 0.1], dtype=torch.float64)
REGULARISED = tensor([0.492747, 0.154147, 0.353106], dtype=torch.float64)
"""The equilibrium with a divergence from the magnet that weighs 0.1."""
NASH = tensor([0.3, 0.3, 0.4], dtype=torch.float64)
ETA, ALPHA = 0.5, 0.1


def mmd(**config: float) -> Algorithm[Any]:
    """The modifier on a base whose loss is -ratio * advantage, without a clip that could bind."""
    unclipped = {"clip_low": 1.0, "clip_high": 1e9}
    settings = {"magnet_coef": ALPHA, "proximal_coef": 1 / ETA, **config}
    return build("rae+mmd", {"rae": unclipped, "mmd": settings})


def loss(algorithm: Algorithm[Any], logits: Tensor, old: Tensor, magnet: Tensor, advantages: Tensor) -> Tensor:
    """The expected loss in a game of one move: every action is there once and weighs as often as it was sampled."""
    shape = (1, len(old))
    inputs = LossInputs(
        logprobs=logits.log_softmax(-1)[None],
        old_logprobs=old.log()[None],
        advantages=advantages[None],
        action_mask=torch.ones(shape, dtype=torch.bool),
        turn_ids=torch.arange(len(old))[None],
        weights=dict.fromkeys(algorithm.normalisations, old[None]),
        reference_logprobs=magnet.log()[None],
    )
    return algorithm.loss(inputs).total(inputs)


def minimised(algorithm: Algorithm[Any], old: Tensor, magnet: Tensor, values: Tensor) -> Tensor:
    logits = old.log().clone().requires_grad_()
    optimizer = torch.optim.LBFGS([logits], max_iter=200, tolerance_grad=1e-13, tolerance_change=0, line_search_fn=LINE)

    def closure() -> float:
        optimizer.zero_grad()
        value = loss(algorithm, logits, old, magnet, values)
        value.backward()
        return float(value.detach())

    optimizer.step(closure)
    return logits.detach().softmax(-1)


LINE = "strong_wolfe"


def closed_form(old: Tensor, magnet: Tensor, values: Tensor, eta: float = ETA, alpha: float = ALPHA) -> Tensor:
    return ((old.log() + alpha * eta * magnet.log() + eta * values) / (1 + alpha * eta)).softmax(-1)


@pytest.mark.parametrize("shift", [0.0, -0.7])
def test_the_minimum_of_the_loss_is_the_step_in_closed_form(shift: float) -> None:
    """Whatever baseline the values have."""
    old = tensor([0.2, 0.7, 0.1], dtype=torch.float64)
    values = WINS @ old
    found = minimised(mmd(), old, MAGNET, values + shift)
    torch.testing.assert_close(found, closed_form(old, MAGNET, values), atol=1e-7, rtol=0)


def test_steps_converge_to_the_regularised_equilibrium_and_those_without_a_magnet_do_not() -> None:
    divergences = {}
    for name, algorithm, steps in (("magnet", mmd(), 100), ("none", mmd(magnet_coef=0.0), 20)):
        policy = MAGNET
        for _ in range(steps):
            policy = minimised(algorithm, policy, MAGNET, WINS @ policy)
        divergences[name] = float((REGULARISED * (REGULARISED / policy).log()).sum())
    assert divergences["magnet"] == pytest.approx(3e-5, abs=1e-5)
    assert divergences["none"] > 0.05


def test_a_magnet_that_follows_the_policy_leads_to_the_equilibrium_of_the_game() -> None:
    policy = magnet = MAGNET
    for step in range(4000):
        magnet = policy if step % 100 == 0 else magnet
        policy = closed_form(policy, magnet, WINS @ policy)
    torch.testing.assert_close(policy, NASH, atol=1e-3, rtol=0)


def test_the_sampled_gradients_are_those_of_the_divergences_wherever_the_policy_is() -> None:
    old, logits = tensor([0.2, 0.7, 0.1], dtype=torch.float64), tensor([0.5, 0.1, -0.3], dtype=torch.float64)
    zeros = torch.zeros(3, dtype=torch.float64)
    exact, estimated = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    policy = exact.log_softmax(-1)
    wanted = ALPHA * (policy.exp() * (policy - MAGNET.log())).sum() + (policy.exp() * (policy - old.log())).sum() / ETA
    wanted.backward()
    found = loss(mmd(), estimated, old, MAGNET, zeros)
    found.backward()
    torch.testing.assert_close(found.detach(), wanted.detach())
    torch.testing.assert_close(estimated.grad, exact.grad)


def test_in_the_first_update_the_divergence_from_the_magnet_has_the_gradient_of_k2() -> None:
    logprobs = tensor([-0.5, -1.5, -2.0], dtype=torch.float64)
    magnet = tensor([-1.0, -0.7, -2.0], dtype=torch.float64)
    mine, plain = logprobs.clone().requires_grad_(), logprobs.clone().requires_grad_()
    F.sampled_divergence(mine, magnet, logprobs).sum().backward()
    F.kl_penalty(plain, magnet, "k2").sum().backward()
    torch.testing.assert_close(mine.grad, plain.grad)


def test_the_weight_of_the_magnet_falls_and_is_the_same_after_a_resume() -> None:
    algorithm = mmd(magnet_coef=0.2, magnet_decay=0.5)
    for iteration, expected in ((0, 0.2), (3, 0.1), (99, 0.02)):
        algorithm.begin_iteration(iteration, 100)
        assert vars(algorithm)["magnet_coef"] == pytest.approx(expected)


def test_without_a_magnet_no_reference_policy_is_kept() -> None:
    assert Need.REFERENCE_LOGPROBS not in mmd(magnet_coef=0.0).needs
    assert Need.REFERENCE_LOGPROBS in mmd().needs
    assert (mmd().reference_every, mmd(refresh_every=3).reference_every) == (0, 3)
    assert build("rae+mmd+epo", {"mmd": {"refresh_every": 4}}).reference_every == 4


def learner_of(rank: int = 0, **config: float) -> Learner:
    torch.manual_seed(0)
    model = add_adapters(small_model(), rank, seed=0) if rank else small_model()
    return Learner(model, build("rae+mmd", {"mmd": config}), UpdateConfig(learning_rate=1e-2))


def episodes() -> list[Trajectory]:
    return [
        Trajectory(
            EpisodeSpec(k, 0),
            turns=[Turn("", "", "", prompt_ids=(1, 2), completion_ids=(3 + k,), logprobs=(-4.0,), reward=float(k % 2))],
            terminated=True,
        )
        for k in range(4)
    ]


def weights(module: torch.nn.Module | None) -> Tensor:
    assert module is not None
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


@pytest.mark.parametrize("rank", [0, 2])
def test_the_magnet_becomes_the_policy_that_an_iteration_was_played_with(rank: int, tmp_path: Path) -> None:
    """With adapters too; and a learner that continues from a checkpoint has the magnet of the one that wrote it."""
    learner = learner_of(rank, refresh_every=2)
    first = weights(learner.reference).clone()
    before = []
    for iteration in range(4):
        before.append(weights(learner.network).clone())
        learner.update(episodes(), iteration)
        assert torch.equal(weights(learner.reference), before[2 * (iteration // 2)])
    assert not torch.equal(weights(learner.reference), first)
    save_checkpoint(tmp_path, learner, 4, {})
    resumed = learner_of(rank, refresh_every=2)
    load_checkpoint(tmp_path / "000004", resumed)
    assert torch.equal(weights(resumed.reference), weights(learner.reference))
    after = [each.update(copy.deepcopy(episodes()), 5)["loss/kl_magnet"] for each in (learner, resumed)]
    assert after[0] == after[1]
    assert abs(after[0]) > 0


def test_a_magnet_that_stays_is_the_first_policy() -> None:
    learner = learner_of()
    first = weights(learner.network).clone()
    for iteration in range(3):
        learner.update(episodes(), iteration)
    assert torch.equal(weights(learner.reference), first)
