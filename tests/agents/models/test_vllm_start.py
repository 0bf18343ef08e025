"""Starting vLLM: what is told when it cannot, and what it leaves alone."""

from pathlib import Path

import pytest
import torch
from small import small_model

from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings
from turngym.agents.sampling import Sampling, turn_uniforms

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

from turngym.agents.models.vllm.config import VllmConfig  # noqa: E402
from turngym.agents.models.vllm.sampler import VllmSampler  # noqa: E402
from turngym.agents.players.vllm import make  # noqa: E402
from turngym.errors import ModelError  # noqa: E402

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


def test_another_model_after_one_that_was_closed_or_forgotten(
    folder: Path, model: LanguageModel, tmp_path: Path
) -> None:
    """The second one has 16 bits, as its folder says."""
    first = VllmSampler(str(folder), SMALL, model.stop_ids)
    one = first.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8))
    first.close()
    first.close()
    small_model(seed=5, hidden=64).network.bfloat16().save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    agent = make(str(tmp_path), AgentSettings(server={"max_model_len": 64, "kv_cache_gib": 0.05}))
    second: VllmSampler = agent.generate.__self__  # type: ignore[attr-defined]
    assert second._llm.llm_engine.model_config.dtype == torch.bfloat16
    assert second.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8)) != one
    del agent, second  # not closed by anybody
    third = VllmSampler(str(folder), SMALL, model.stop_ids)
    assert third.generate([[5, 6]], DRAWS, Sampling(max_new_tokens=8)) == one
    third.close()
