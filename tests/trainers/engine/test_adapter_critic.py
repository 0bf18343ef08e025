"""A critic beside low-rank adapters: adapters and an output of its own on the policy's frozen trunk."""

import copy
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small import play, small_model
from torch import Tensor, nn

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.scoring import score
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint

RANK = 2
SETTINGS = UpdateConfig(learning_rate=1e-2, critic_learning_rate=1e-2)


def adapted_learner(name: str = "turn_ppo", dtype: torch.dtype = torch.float32, **options: object) -> Learner:
    model = small_model()
    nn.Module.to(model.network, dtype)
    torch.manual_seed(0)
    return Learner(add_adapters(model, RANK, seed=0), build(name, {name: options}), SETTINGS)


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    played = play(small_model())
    for number, trajectory in enumerate(played):
        trajectory.terminated, trajectory.truncated = True, False
        for turn in trajectory.turns:
            turn.reward = float(number % 3) / 2
    return played


def bytes_held(modules: Sequence[nn.Module]) -> int:
    storages = {}
    for module in modules:
        for tensor in [*module.parameters(), *module.buffers()]:
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return sum(storages.values())


def adapters_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in module.named_parameters() if "lora_" in name}


def logprobs(learner: Learner, trajectories: Sequence[Trajectory]) -> Tensor:
    with torch.no_grad():
        return score(learner.network, build_rows(trajectories, False), 1.0).logprobs


def test_the_critic_trains_adapters_and_its_output_alone() -> None:
    learner = adapted_learner()
    assert learner.critic is not None
    adapters = sum(parameter.numel() for parameter in learner.policy_parameters)
    width = learner.network.config.hidden_size
    assert sum(parameter.numel() for parameter in learner.other_parameters) == adapters + width + 1
    whole = sum(parameter.numel() for parameter in small_model().network.base_model.parameters())
    assert adapters + width + 1 < whole / 3


def test_no_second_trunk_is_held_in_memory() -> None:
    """Neither by the critic, nor by the reference policy, nor by a sampler that is held back."""
    learner = adapted_learner(kl_coef=0.1)
    learner.hold_back_sampler()
    assert learner.critic is not None
    assert learner.reference is not None
    assert learner.sampler is not None
    assert learner.reference is learner.network
    copies: list[nn.Module] = [learner.critic, learner.sampler]
    own = bytes_held([learner.network])
    adapters = sum(parameter.numel() * parameter.element_size() for parameter in learner.policy_parameters)
    head = sum(parameter.numel() * parameter.element_size() for parameter in learner.critic.head.parameters())
    buffers = sum(buffer.untyped_storage().nbytes() for each in copies for buffer in each.buffers())
    assert bytes_held([learner.network, *copies]) == own + 2 * adapters + head + buffers
    assert buffers < own / 20


def test_a_policy_that_is_trained_as_a_whole_shares_nothing_with_its_critic() -> None:
    learner = Learner(small_model(), build("turn_ppo"), SETTINGS)
    assert learner.critic is not None
    mine = {parameter.data_ptr() for parameter in learner.network.parameters()}
    assert not mine & {parameter.data_ptr() for parameter in learner.critic.parameters()}
    assert all(parameter.requires_grad for parameter in learner.critic.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_the_critic_leaves_the_policy_as_it_was(dtype: torch.dtype, trajectories: list[Trajectory]) -> None:
    """Gradients reach its output and then its adapters; trunk and policy keep every bit."""
    learner = adapted_learner("vc_ppo", dtype, pretrain_iterations=9)
    assert learner.critic is not None
    before, weights = logprobs(learner, trajectories), copy.deepcopy(learner.network.state_dict())
    critic = copy.deepcopy(learner.critic.state_dict())
    assert learner.critic.head.weight.dtype == torch.float32
    losses = [learner.update(trajectories, iteration)["loss/value_loss"] for iteration in range(8)]
    assert losses[-1] < losses[0]
    assert torch.equal(logprobs(learner, trajectories), before)
    for name, tensor in learner.network.state_dict().items():
        assert torch.equal(tensor, weights[name]), name
    changed = {name for name, tensor in learner.critic.state_dict().items() if not torch.equal(tensor, critic[name])}
    assert changed == {"head.weight", "head.bias"} | {name for name in critic if "lora_" in name}


def test_training_both_moves_their_adapters_apart(trajectories: list[Trajectory]) -> None:
    learner = adapted_learner()
    for iteration in range(2):
        learner.update(trajectories, iteration)
    assert learner.critic is not None
    policy, critic = adapters_of(learner.network.base_model), adapters_of(learner.critic.backbone)
    assert policy.keys() == critic.keys()
    for name, tensor in policy.items():
        assert not torch.equal(tensor, critic[name]), name


def test_a_checkpoint_holds_the_trunk_once_and_goes_on_bit_for_bit(
    tmp_path: Path, trajectories: list[Trajectory]
) -> None:
    learner = adapted_learner(kl_coef=0.1)
    for iteration in range(2):
        learner.update(trajectories, iteration)
    path = save_checkpoint(tmp_path, learner, 2, {})
    assert all(name.startswith("head.") or "lora_" in name for name in load_file(path / "critic.safetensors"))
    resumed = adapted_learner(kl_coef=0.1)
    load_checkpoint(path, resumed)
    for each in (learner, resumed):
        for iteration in (2, 3):
            each.update(trajectories, iteration)
    for name, module in learner.trained_modules.items():
        for key, tensor in module.state_dict().items():
            assert torch.equal(tensor, resumed.trained_modules[name].state_dict()[key]), (name, key)


def test_a_checkpoint_with_tensors_that_are_not_trained_is_refused(tmp_path: Path) -> None:
    """The trunk of its critic would be written into the frozen one of the policy."""
    learner, fresh = adapted_learner(), adapted_learner()
    path = save_checkpoint(tmp_path, learner, 1, {})
    assert learner.critic is not None
    save_file({name: tensor + 0.5 for name, tensor in learner.critic.state_dict().items()}, path / "critic.safetensors")
    before = copy.deepcopy(fresh.network.state_dict())
    with pytest.raises(CheckpointError, match=r"critic\.safetensors belongs to another model"):
        load_checkpoint(path, fresh)
    for name, tensor in fresh.network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_a_frozen_self_shares_the_trunk(tmp_path: Path) -> None:
    from turngym.trainers.loop.tasks.opponent_pool import PastSelves

    model: LanguageModel = add_adapters(small_model(), RANK, seed=0)
    past = PastSelves(keep=2, every=1)
    past.notice(model, 0)
    past.notice(model, 1)
    copies: list[nn.Module] = [past.model(name).network for name in past.newest(2)]
    trained = sum(p.numel() * p.element_size() for p in model.network.parameters() if p.requires_grad)
    assert bytes_held([model.network, *copies]) < bytes_held([model.network]) * 1.1 + 2 * trained
    with torch.no_grad():
        for parameter in adapters_of(model.network).values():
            parameter.add_(1.0)
    kept = adapters_of(copies[0])
    assert not any(torch.equal(kept[name], tensor) for name, tensor in adapters_of(model.network).items())
    past.save(tmp_path, 0)
    again = PastSelves(keep=2, every=1)
    again.load(tmp_path, model, 2)
    for name, tensor in kept.items():
        assert torch.equal(adapters_of(again.model(past.newest(2)[0]).network)[name], tensor)
