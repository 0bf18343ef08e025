"""Starting vLLM: what is told when it cannot, and what it leaves alone."""

from pathlib import Path

import numpy as np
import pytest
import torch
from small import small_model

from turngym.agents.models.loading import LanguageModel, load_vocabulary
from turngym.agents.players import AgentSettings
from turngym.agents.sampling import Sampling, turn_uniforms

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

from turngym.agents.models.vllm.config import VllmConfig  # noqa: E402
from turngym.agents.models.vllm.sampler import VllmSampler  # noqa: E402
from turngym.agents.players.vllm import make  # noqa: E402
from turngym.errors import ConfigError, ModelError  # noqa: E402

SMALL = VllmConfig(max_model_len=64, kv_cache_gib=0.05)
DRAWS = [turn_uniforms(7, 0, 0, 0, 8)]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model(hidden=64)


@pytest.fixture(scope="module")
def folder(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    model.save(path)
    return path


def test_too_little_memory_is_told_with_a_way_out(folder: Path, model: LanguageModel) -> None:
    with pytest.raises(ModelError, match=r"cannot be started .*memory.*: lower max_model_len.*kv_cache_gib"):
        VllmSampler(str(folder), VllmConfig(kv_cache_gib=900_000), model.stop_ids)


def test_heads_that_vllm_cannot_do_are_told_with_a_way_out(tmp_path: Path) -> None:
    """Its attention on a CPU knows some widths of a head only; transformers knows all."""
    odd = small_model(hidden=16)
    odd.save(tmp_path)
    sampler = VllmSampler(str(tmp_path), SMALL, odd.stop_ids)
    with pytest.raises(ModelError, match=r"vLLM fails with .*head_dim.*as hf:PATH"):
        sampler.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=2))
    sampler.close()


def test_starting_it_changes_nothing_for_others(folder: Path) -> None:
    torch.manual_seed(3)
    torch_state, threads = torch.get_rng_state(), torch.get_num_threads()
    numpy_state = str(np.random.get_state())
    sampler = VllmSampler(str(folder), SMALL, load_vocabulary(str(folder)).stop_ids)
    sampler.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=2))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert str(np.random.get_state()) == numpy_state
    torch.set_num_threads(threads + 1)
    assert torch.get_num_threads() == threads + 1, "vLLM puts a function that does nothing into its place"
    torch.set_num_threads(threads)
    sampler.close()


def test_one_model_a_process_and_another_one_after_it(folder: Path, model: LanguageModel, tmp_path: Path) -> None:
    """Two at a time would share what vLLM has once, and the end of the one breaks the other."""
    first = VllmSampler(str(folder), SMALL, model.stop_ids)
    with pytest.raises(ConfigError, match=r"holds .* already.*end_vllm.*openai:MODEL@URL"):
        VllmSampler(str(folder), SMALL, model.stop_ids)
    one = first.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8))
    first.close()
    first.close()
    other = small_model(seed=5, hidden=64)
    other.save(tmp_path)
    second = VllmSampler(str(tmp_path), SMALL, other.stop_ids)
    assert second.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8)) != one
    del second  # not closed by anybody
    third = VllmSampler(str(folder), SMALL, model.stop_ids)
    assert third.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8)) == one
    third.close()


def test_the_weights_format_is_that_of_the_folder(folder: Path, model: LanguageModel, tmp_path: Path) -> None:
    """vLLM's own choice for float32 would be a shorter one."""
    sampler = VllmSampler(str(folder), SMALL, model.stop_ids)
    assert sampler._llm.llm_engine.model_config.dtype == torch.float32
    sampler.close()
    small_model(hidden=64).network.bfloat16().save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    agent = make(str(tmp_path), AgentSettings(server={"max_model_len": 64, "kv_cache_gib": 0.05}))
    assert agent.generate.__self__._llm.llm_engine.model_config.dtype == torch.bfloat16  # type: ignore[attr-defined]
    agent.generate.__self__.close()  # type: ignore[attr-defined]
