"""Which attention can be used where, and that it is settled before anything is trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model

from turngym.agents.models.attention import ATTENTIONS, require_attention, set_attention
from turngym.agents.models.loading import load_model
from turngym.errors import ConfigError
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.settings.config import TrainConfig

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("flash_attention_2", r"package flash-attn, and one of them is absent.*--attention sdpa"),
        ("flex_attention", r"no gradients on a CPU: pass --attention sdpa"),
    ],
)
def test_attention_that_cannot_train_here_is_refused_before_anything_is_trained(
    name: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.utils.import_utils.is_flash_attn_2_available", lambda: False)
    with pytest.raises(ConfigError, match=message):
        require_attention(name, CPU)
    with pytest.raises(ConfigError, match=message):
        train(TrainConfig(attention=name, device="cpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    small_model().save(tmp_path / "model")
    with pytest.raises(ConfigError, match=message):
        load_model(str(tmp_path / "model"), attention=name, device="cpu")


def test_a_gpu_takes_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.utils.import_utils.is_flash_attn_2_available", lambda: True)
    for name in ATTENTIONS:
        require_attention(name, GPU)


def test_a_network_takes_the_attention_over() -> None:
    network: Any = small_model().network
    set_attention(network, "sdpa")
    assert network.config._attn_implementation == "sdpa"
    set_attention(network, "flex_attention")
    assert network.config._attn_implementation == "flex_attention"
    assert network.base_model.config._attn_implementation == "flex_attention"


def test_an_architecture_without_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    network = small_model().network

    def refuse(name: str) -> None:
        raise ValueError(f"Qwen3ForCausalLM does not support {name} yet")

    monkeypatch.setattr(network, "set_attn_implementation", refuse)
    with pytest.raises(ConfigError, match=r"a Qwen3ForCausalLM does not work with flex_attention .*--attention sdpa"):
        set_attention(network, "flex_attention")


def test_unknown_names_and_trees_with_flash_attention_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"attention must be one of 'sdpa', .*, got 'paged'"):
        TrainConfig(attention="paged")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"takes no mask, which token trees need.*--update\.layout packed"):
        TrainConfig(attention="flash_attention_2", update=UpdateConfig(layout="tree"))
    TrainConfig(attention="flash_attention_2", update=UpdateConfig(layout="packed"))


def test_runs_of_before_have_neither_setting() -> None:
    content = TrainConfig().as_json()
    del content["attention"], content["update"]["layout"]
    found = TrainConfig.from_json(content)
    assert (found.attention, found.update.layout) == ("sdpa", "auto")
    assert found == replace(TrainConfig())
