"""Low-rank adapters: where they are, the reference policy without them, what a checkpoint of them holds."""

import copy
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small import play, small_model
from torch import Tensor, nn

from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine.adapters import adapted_layers, adapters_off, add_adapters, without_adapters
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.prepared import prepare
from turngym.trainers.engine.scoring import score
from turngym.trainers.loop.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from turngym.trainers.loop.tasks.opponent_pool import PastSelves

SETTINGS = UpdateConfig(learning_rate=1e-2, critic_learning_rate=1e-2)
WITH_REFERENCE = {"grpo": {"kl_coef": 0.1}}


def moved(model: LanguageModel) -> LanguageModel:
    """Give the adapters weights that change what the model computes."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.network.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model


def learner_of(name: str = "grpo", **options: float) -> Learner:
    torch.manual_seed(0)
    return Learner(add_adapters(small_model(), 2, seed=0), build(name, {name: options}), SETTINGS)


def storages(modules: Sequence[nn.Module]) -> int:
    """Return the bytes that the tensors of some networks hold, each storage once."""
    tensors = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    return sum({each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}.values())


def networks(learner: Learner) -> list[nn.Module]:
    return [each for each in (learner.network, learner.reference, learner.sampler, learner.critic) if each is not None]


@pytest.fixture(scope="module")
def trajectories() -> list[Trajectory]:
    played = play(small_model())
    for number, trajectory in enumerate(played):
        for turn in trajectory.turns:
            turn.reward = float(number % 3) / 2
    return played


def logprobs(network: nn.Module, trajectories: Sequence[Trajectory]) -> Tensor:
    with torch.no_grad():
        return score(network, build_rows(trajectories, False), 1.0).logprobs  # type: ignore[arg-type]


@pytest.mark.parametrize("targets", [("all-linear",), ("v_proj", "lm_head")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_reference_policy_is_the_model_without_its_adapters(
    dtype: torch.dtype, targets: tuple[str, ...], trajectories: list[Trajectory]
) -> None:
    model = small_model()
    nn.Module.to(model.network, dtype)
    base = copy.deepcopy(model.network)
    model = moved(add_adapters(model, 2, seed=0, targets=targets))
    method = build("grpo", WITH_REFERENCE)
    adapted = logprobs(model.network, trajectories)
    found, expected = (
        prepare(trajectories, model, method, reference=each).table.token_reference_logprob
        for each in (model.network, base)
    )
    assert found is not None and expected is not None
    assert (found - expected).abs().max() == 0.0
    assert torch.equal(logprobs(model.network, trajectories), adapted), "the adapters are on again"
    assert not torch.equal(adapted, logprobs(base, trajectories))


def test_adapters_are_on_again_after_an_error_and_train_as_before(trajectories: list[Trajectory]) -> None:
    model = moved(add_adapters(small_model(), 2, seed=0))
    before, trained = logprobs(model.network, trajectories), [p.requires_grad for p in model.network.parameters()]
    with pytest.raises(RuntimeError, match="out of memory"), adapters_off(model.network):
        raise RuntimeError("out of memory")
    assert torch.equal(logprobs(model.network, trajectories), before)
    assert [p.requires_grad for p in model.network.parameters()] == trained
    frozen = model.network.requires_grad_(False)
    with adapters_off(frozen):
        pass
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_a_reference_policy_costs_no_memory() -> None:
    alone, with_reference = learner_of(), learner_of(kl_coef=0.1)
    assert with_reference.reference is with_reference.network
    assert storages(networks(with_reference)) == storages(networks(alone))


def test_a_run_stays_close_to_its_model_without_adapters(trajectories: list[Trajectory]) -> None:
    """The divergence is 0 before the first update and above 0 after it: the reference does not follow the policy."""
    learner = learner_of(kl_coef=0.1)
    first, second = (learner.update(trajectories, iteration) for iteration in range(2))
    assert first["policy/kl_reference"] == 0.0 < second["policy/kl_reference"]


def test_a_sampler_that_is_held_back_takes_over_adapters_alone(trajectories: list[Trajectory]) -> None:
    learner = learner_of()
    learner.hold_back_sampler()
    held = learner.sampler
    assert held is not None
    before = logprobs(held, trajectories)
    frozen = {name: p._version for name, p in learner.network.named_parameters() if not p.requires_grad}
    learner.update(trajectories, 0)
    assert torch.equal(logprobs(held, trajectories), before)
    learner.hold_back_sampler()
    assert torch.equal(logprobs(held, trajectories), logprobs(learner.network, trajectories))
    assert {name: p._version for name, p in learner.network.named_parameters() if not p.requires_grad} == frozen


def test_adapters_lie_on_the_layers_that_are_named() -> None:
    model = small_model()
    linear = {name for name, module in model.network.named_modules() if isinstance(module, nn.Linear)}
    assert set(adapted_layers(add_adapters(small_model(), 2, 0).network)) == linear - {"lm_head"}
    found = adapted_layers(add_adapters(small_model(), 2, 0, targets=("q_proj", "layers.1.mlp.up_proj")).network)
    assert {name.removeprefix("model.") for name in found} == {
        "layers.0.self_attn.q_proj",
        "layers.1.self_attn.q_proj",
        "layers.1.mlp.up_proj",
    }
    with pytest.raises(ConfigError, match=r"small has no linear layer 'q_projj' for adapters\. .*q_proj"):
        add_adapters(small_model(), 2, 0, targets=("v_proj", "q_projj"))
    with pytest.raises(ConfigError, match="no linear layer 'embed_tokens'"):
        add_adapters(small_model(), 2, 0, targets=("embed_tokens",))


@pytest.mark.parametrize(("rslora", "scale"), [(False, 6 / 4), (True, 6 / 2)])
def test_the_weight_of_adapters_is_divided_by_their_rank_or_its_root(rslora: bool, scale: float) -> None:
    layers = adapted_layers(add_adapters(small_model(), 4, 0, alpha=6, rslora=rslora).network)
    assert {layer.scaling["default"] for layer in layers.values()} == {scale}
    for layer in layers.values():
        assert isinstance(layer.lora_dropout["default"], nn.Identity)


def test_an_adapted_head_is_merged_into_a_head_of_its_own(tmp_path: Path, trajectories: list[Trajectory]) -> None:
    """The model ties its head to its embedding, and the adapters are on the head alone."""
    model = moved(add_adapters(small_model(), 2, 0, targets=("q_proj", "lm_head")))
    assert model.network.config.tie_word_embeddings
    merged = without_adapters(model)
    torch.testing.assert_close(logprobs(merged.network, trajectories), logprobs(model.network, trajectories))
    name = "model.embed_tokens.weight"
    assert torch.equal(merged.network.state_dict()[name], model.network.state_dict()[name])
    merged.save(tmp_path / "merged")
    again = load_model(str(tmp_path / "merged"))
    assert torch.equal(logprobs(again.network, trajectories), logprobs(merged.network, trajectories))
    assert model.network.config.tie_word_embeddings, "the model itself is as it was"


def test_an_adapted_head_is_scored_with_its_adapters(trajectories: list[Trajectory]) -> None:
    """In chunks as by the network itself, gradients of the adapters included."""
    model = moved(add_adapters(small_model(dtype=torch.float64), 2, 0, targets=("q_proj", "lm_head")))
    nn.Module.to(model.network, torch.float64)
    trained = [parameter for parameter in model.network.parameters() if parameter.requires_grad]
    [row, *_] = build_rows(trajectories, False)
    found = score(model.network, [row], 0.7).logprobs[0]
    logits = model.network(torch.tensor([row.ids.tolist()])).logits[0] / 0.7
    reads, targets = torch.tensor([[read.position, read.target] for read in row.reads]).T
    dense = logits.log_softmax(-1)[reads, targets]
    torch.testing.assert_close(found, dense, atol=1e-10, rtol=0)
    found_gradients, gradients = (torch.autograd.grad(each.sum(), trained) for each in (found, dense))
    for mine, its in zip(found_gradients, gradients, strict=True):
        torch.testing.assert_close(mine, its, atol=1e-10, rtol=0)


def test_merging_copies_only_the_layers_with_adapters() -> None:
    model = moved(add_adapters(small_model(), 2, 0, targets=("q_proj",)))
    layers = adapted_layers(model.network)
    merged = sum(layer.get_base_layer().weight.nbytes for layer in layers.values())
    buffers = sum(buffer.untyped_storage().nbytes() for buffer in model.network.buffers())
    both = storages([model.network, without_adapters(model).network])
    assert both == storages([model.network]) + merged + buffers


def test_a_checkpoint_holds_adapters_and_not_the_model(tmp_path: Path, trajectories: list[Trajectory]) -> None:
    learner = learner_of("turn_ppo", kl_coef=0.1)
    learner.hold_back_sampler()
    learner.update(trajectories, 0)
    path = save_checkpoint(tmp_path, learner, 1, {})
    assert {file.name for file in path.iterdir()} == {
        "state.json",
        *(f"{name}.safetensors" for name in ("policy", "critic", "sampler", "optimizer")),
    }
    saved = {name: load_file(path / f"{name}.safetensors") for name in ("policy", "critic", "sampler")}
    assert all("lora_" in name or name in ("head.weight", "head.bias") for each in saved.values() for name in each)
    trained = {name for name, p in learner.network.named_parameters() if p.requires_grad}
    assert saved["policy"].keys() == saved["sampler"].keys() == trained
    whole = sum(tensor.nbytes for tensor in learner.network.state_dict().values())
    assert sum(tensor.nbytes for tensor in saved["policy"].values()) < whole / 5


def test_adapters_of_a_model_that_has_changed_are_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, learner_of(), 1, {})
    changed = learner_of()
    with torch.no_grad():
        next(p for p in changed.network.parameters() if not p.requires_grad).add_(0.5)
    with pytest.raises(CheckpointError, match=r"has changed.* start a new run"):
        load_checkpoint(path, changed)


def test_files_of_past_selves_hold_adapters_alone(tmp_path: Path, trajectories: list[Trajectory]) -> None:
    model = moved(add_adapters(small_model(), 2, seed=0))
    past = PastSelves(keep=1, every=1)
    past.notice(model, 0)
    past.save(tmp_path, 0)
    assert all("lora_" in name for name in load_file(tmp_path / "past-000000.safetensors"))
    again = PastSelves(keep=1, every=1)
    again.load(tmp_path, add_adapters(small_model(), 2, seed=5), 1)
    assert torch.equal(
        logprobs(again.model("past-000000").network, trajectories), logprobs(model.network, trajectories)
    )
