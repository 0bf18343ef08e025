"""Methods of every kind have the same gradient in rows, packed rows and token trees."""

import copy
from collections.abc import Iterator

import pytest
import torch
from algorithm_batches import VARIANTS, loss_code, made
from layout_batches import exact_norms, token_episodes, wide_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.update_config import LayoutName
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.engine.scoring import Critic
from turngym.trainers.engine.teachers import Teacher


@pytest.fixture(scope="module", autouse=True)
def _exact() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        yield


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return wide_model(layers=1)  # what methods make of its numbers is compared; test_layouts has more layers


@pytest.fixture(scope="module")
def trajectories(model: LanguageModel) -> list[Trajectory]:
    return token_episodes(model)


def teacher_of(model: LanguageModel) -> Teacher:
    """A copy of the policy that was pushed away from it, with another lesson for each episode and none for some."""
    network = copy.deepcopy(model.network).requires_grad_(False)
    for parameter in network.parameters():
        parameter.mul_(1.05)
    return Teacher(network, lessons=lambda episodes: [(7,) * (k % 4) if k % 4 else None for k in range(len(episodes))])


def gradients(
    variant: str, model: LanguageModel, trajectories: list[Trajectory], layout: LayoutName, max_tokens: int
) -> list[Tensor]:
    """Gradients of policy, critic and the method's own networks, with advantages from values and references."""
    method = made(variant)
    for module in method.modules().values():
        module.double()
    torch.manual_seed(0)
    critic = Critic(model.network) if Need.VALUES in method.needs else None
    if critic is not None:
        torch.nn.init.normal_(critic.head.weight)
    reference = copy.deepcopy(model.network).requires_grad_(False)
    model.network.zero_grad()
    batch = prepare(
        trajectories,
        model,
        method,
        critic=critic,
        reference=reference,
        teacher=teacher_of(model),
        layout=layout,
        max_tokens=max_tokens,
    )
    for inputs in batch.micro_batches():
        method.loss(inputs).total(inputs).backward()
    modules = [model.network, *([critic] if critic else []), *method.modules().values()]
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]


BY_LOSS_CODE = {loss_code(variant): variant for variant in sorted(VARIANTS, reverse=True)}
"""One variant for each code and ratio of a loss, of the method and of what it modifies."""


@pytest.mark.parametrize("variant", sorted(BY_LOSS_CODE.values()))
def test_every_method_has_the_same_gradient_in_every_layout(
    variant: str, model: LanguageModel, trajectories: list[Trajectory]
) -> None:
    expected = gradients(variant, model, trajectories, "rows", 400)
    size = max(float(each.abs().max()) for each in expected)
    assert size > 1e-6, "the gradient is zero: the comparison would show nothing"
    other = ("packed", 300) if list(BY_LOSS_CODE.values()).index(variant) % 2 else ("tree", 1000)
    for layout, max_tokens in (("tree", 60), other):
        found = gradients(variant, model, trajectories, layout, max_tokens)  # type: ignore[arg-type]
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, atol=1e-9 * max(size, 1.0), rtol=1e-9)
