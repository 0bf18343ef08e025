"""Loading models: what comes back is what was saved, and what is not a model is refused in words."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small import TEXTS, agent_of, group_specs, small_model, sokoban_vector

from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.loading import load_model
from turngym.agents.players import AgentSettings, make_agent
from turngym.errors import ConfigError, ModelError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "small"
    small_model().save(folder)
    return folder


def test_a_saved_model_comes_back_with_the_same_tokens_and_logits(saved: Path) -> None:
    """Some model types get another tokenizer class when they are loaded again, which would cut texts otherwise."""
    model, loaded = small_model(), load_model(str(saved))
    for text in [*TEXTS, "漢字", "<|user|>now<|end|><|assistant|>"]:
        assert loaded.tokenizer.encode(text) == model.tokenizer.encode(text)
    ids = torch.tensor([model.tokenizer.encode(TEXTS[0])])
    with torch.no_grad():
        torch.testing.assert_close(loaded.network(ids).logits, model.network(ids).logits, atol=0, rtol=0)
    assert loaded.tokenizer.chat_template == model.tokenizer.chat_template
    assert loaded.stop_ids == model.stop_ids


def test_a_loaded_model_plays_as_before(saved: Path) -> None:
    specs = group_specs(1, 3)
    before = rollout(sokoban_vector(3), agent_of(small_model()), specs)
    settings = AgentSettings(max_new_tokens=5, prompt={"instructions": False})
    after = rollout(sokoban_vector(3), make_agent(f"transformers:{saved}", settings), specs)
    assert [t.completion_ids for x in before for t in x.turns] == [t.completion_ids for x in after for t in x.turns]


@pytest.mark.parametrize("kind", ["nothing", "file", "empty folder", "no weights", "no json"])
def test_a_path_that_is_no_model_is_refused(kind: str, saved: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    if kind == "file":
        target.write_text("hello")
    elif kind != "nothing":
        target.mkdir()
    if kind == "no weights":
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            (target / name).write_bytes((saved / name).read_bytes())
    if kind == "no json":
        (target / "config.json").write_text("{")
    with pytest.raises(
        ModelError, match=r"there is no model at|is a file, expected|could not be loaded as a causal"
    ) as caught:
        load_model(str(target))
    assert str(target) in str(caught.value)
    assert "folder" in str(caught.value)


class Caught:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def test_a_pickle_that_would_run_code_is_refused_in_our_words(saved: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    shutil.copytree(saved, target)
    (target / "model.safetensors").unlink()
    torch.save({"weight": Caught(f"touch {tmp_path}/ran")}, target / "pytorch_model.bin")
    with pytest.raises(ModelError, match="could run code, so it is not loaded: pass a model with safetensors files"):
        load_model(str(target))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"[]", b"7", b'{"model_type": []}', b"[" * 100_000, b"\xff\x00" * 8])
def test_whatever_is_wrong_with_a_file_is_an_error_of_the_model(
    name: str, content: bytes, saved: Path, tmp_path: Path
) -> None:
    target = tmp_path / "model"
    shutil.copytree(saved, target)
    (target / name).write_bytes(content)
    try:
        load_model(str(target))
    except ModelError as error:
        assert str(target) in str(error)
    else:
        assert name == "tokenizer_config.json"  # the tokenizer's file says the same


def test_a_gguf_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no file .*model\.gguf: pass an existing \.gguf file"):
        load_model(str(tmp_path / "model.gguf"))


def test_a_tokenizer_without_chat_template_is_refused(saved: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    model = small_model()
    model.tokenizer.chat_template = None
    model.save(target)
    with pytest.raises(ModelError, match=r"has no chat template, so prompts cannot be built: use an instruct model"):
        load_model(str(target))


def test_a_tokenizer_without_end_token_is_refused(saved: Path, tmp_path: Path) -> None:
    target = tmp_path / "model"
    small_model().save(target)
    settings = json.loads((target / "tokenizer_config.json").read_text())
    del settings["eos_token"]
    (target / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="has no end token"):
        load_model(str(target))


def test_the_backend_needs_a_model() -> None:
    with pytest.raises(ConfigError, match="write transformers:PATH_OR_NAME"):
        make_agent("transformers")


def test_the_same_seed_builds_the_same_weights_and_leaves_torch_alone() -> None:
    state = torch.random.get_rng_state()
    first, second, other = small_model(3), small_model(3), small_model(4)
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [dict(m.network.state_dict()) for m in (first, second, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert any(not torch.equal(weights[0][name], weights[2][name]) for name in weights[0])
