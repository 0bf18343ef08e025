"""Gradient checkpointing: the same gradients from less memory, and samples that are right afterwards."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from small import agent_of, group_specs, play, small_model, sokoban_vector
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.forward_pass import cache_keyword
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.scoring import score


def learner_of(model: LanguageModel, name: str, is_checkpointed: bool, **settings: Any) -> Learner:
    torch.manual_seed(0)
    config = UpdateConfig(gradient_checkpointing=is_checkpointed, max_grad_norm=0, learning_rate=1e-2, **settings)
    return Learner(copy.deepcopy(model), build(name), config)


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    played = play(small_model(), "conversation")
    for number, trajectory in enumerate(played):
        for turn in trajectory.turns:
            turn.reward = float(number % 3) / 2
    return played


def gradients_and_bytes(learner: Learner, trajectories: Sequence[Trajectory]) -> tuple[dict[str, Tensor], int]:
    """Return the gradients of one update, and the bytes of what its forward passes save besides the weights."""
    weights = {p.data_ptr() for module in learner.trained_modules.values() for p in module.parameters()}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        learner.update(trajectories, 0)
    modules = learner.trained_modules.items()
    found = {f"{key}.{name}": p.grad for key, module in modules for name, p in module.named_parameters()}
    return {name: gradient for name, gradient in found.items() if gradient is not None}, sum(saved.values())


@pytest.mark.parametrize("name", ["grpo", "ppo"])
@pytest.mark.parametrize("rank", [0, 2])
def test_gradients_are_equal_to_the_last_bit(name: str, rank: int, trajectories: list[Trajectory]) -> None:
    model = add_adapters(small_model(), rank, seed=0) if rank else small_model()
    plain, _ = gradients_and_bytes(learner_of(model, name, False), trajectories)
    found, _ = gradients_and_bytes(learner_of(model, name, True), trajectories)
    assert plain.keys() == found.keys()
    assert max(float(gradient.abs().max()) for gradient in plain.values()) > 1e-4
    for key, gradient in plain.items():
        assert torch.equal(found[key], gradient), key


def deep_model() -> LanguageModel:
    from turngym.agents.models.embedded import EmbeddedConfig, build_model

    model = small_model()
    network = build_model(model.tokenizer, EmbeddedConfig(hidden_size=32, layers=8, heads=2), 0)  # type: ignore[arg-type]
    return LanguageModel(network, model.tokenizer, "deep")


def test_layers_keep_their_input_alone(trajectories: list[Trajectory]) -> None:
    """Tensors that the forward passes save; no clock and no allocator is asked."""
    model = deep_model()
    _, plain = gradients_and_bytes(learner_of(model, "grpo", False, max_micro_batch_tokens=10**6), trajectories)
    _, found = gradients_and_bytes(learner_of(model, "grpo", True, max_micro_batch_tokens=10**6), trajectories)
    assert found < plain / 4


def test_the_sampling_network_is_left_alone_during_an_update(
    trajectories: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may sample with it; weights are shared."""
    learner = learner_of(small_model(), "grpo", True)
    seen: list[tuple[bool, bool]] = []
    loss = learner.algorithm.loss

    def look(inputs: Any) -> Any:
        networks = (learner.model.network, learner.network)
        seen.append(tuple(any(m.training for m in network.modules()) for network in networks))  # type: ignore[arg-type]
        return loss(inputs)

    monkeypatch.setattr(learner.algorithm, "loss", look)
    before = [each.detach().clone() for each in learner.model.network.parameters()]
    learner.update(trajectories, 0)
    assert set(seen) == {(False, True)}
    pairs = zip(learner.model.network.parameters(), learner.network.parameters(), strict=True)
    assert all(one is other for one, other in pairs)
    assert not all(map(torch.equal, before, learner.model.network.parameters()))


def test_sampling_after_an_update_is_right(trajectories: list[Trajectory]) -> None:
    learner = learner_of(small_model(), "ppo", True)
    before = learner.network.state_dict()["model.norm.weight"].clone()
    learner.update(trajectories, 0)
    assert not torch.equal(learner.network.state_dict()["model.norm.weight"], before)
    assert not any(module.training for module in learner.network.modules())
    vector = sokoban_vector()
    played = rollout(vector, agent_of(learner.model), group_specs())
    vector.close()
    sampled = torch.tensor([p for trajectory in played for turn in trajectory.turns for p in turn.logprobs])
    rows = build_rows(played, False)
    with torch.no_grad():
        scored = score(learner.network, rows, 1.0).logprobs
    computed = torch.cat([line[: len(row.reads)] for row, line in zip(rows, scored, strict=True)])
    torch.testing.assert_close(computed, sampled, atol=2e-5, rtol=0)


def cached(network: Any) -> int:
    """Return how many tokens a pass with gradients leaves in the cache."""
    output = network(torch.tensor([[5, 6, 7]]), use_cache=True)
    cache = getattr(output, cache_keyword(type(network)) or "")
    return 0 if cache is None else int(cache.get_seq_length())


def test_layers_are_in_train_mode_inside_of_the_context_alone() -> None:
    """Inside, the cache is empty, so that anything sampled there would be wrong."""
    network = small_model().network
    layers = checkpointed_layers(network)
    with pytest.raises(ZeroDivisionError), checkpointing(layers):
        assert cached(network) == 0
        assert [module for module in network.modules() if module.training] == layers
        raise ZeroDivisionError
    assert cached(network) == 3
    assert not any(module.training for module in network.modules())
    assert not any(layer.gradient_checkpointing for layer in layers)


def test_a_dropout_is_refused_by_its_name() -> None:
    model = small_model()
    attention: Any = model.network.get_submodule("model.layers.1.self_attn")
    attention.attention_dropout = 0.1
    with pytest.raises(ConfigError, match=r"model\.layers\.1\.self_attn\.attention_dropout is 0\.1: set that dropout"):
        learner_of(model, "grpo", True)
    attention.attention_dropout = 0.0
    attention.extra = nn.Dropout(0.2)
    with pytest.raises(ConfigError, match=r"self_attn\.extra is 0\.2"):
        learner_of(model, "grpo", True)
    learner_of(model, "grpo", False)


def test_a_network_without_such_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match="a Linear has no layers that can be checkpointed"):
        checkpointed_layers(nn.Linear(2, 2))
