"""`turngym export-model`: merged weights, adapters, and what cannot be exported."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors import SafetensorError
from safetensors.torch import load_file
from test_training import SMALL
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from turngym.__main__ import main
from turngym.agents.models.loading import load_model
from turngym.agents.models.settings import model_settings
from turngym.agents.models.size import parameter_count
from turngym.agents.players import AgentSettings, make_agent
from turngym.errors import CheckpointError, ConfigError, ModelError, RunFolderExists
from turngym.trainers.loop.checkpoints.exporting import export_model
from turngym.trainers.loop.job import train
from turngym.trainers.settings.config import EvaluationConfig

FEW = replace(
    SMALL,
    iterations=2,
    checkpoint_every=1,
    algorithm="grpo",
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)
ALWAYS = {"grpo": {"entropy_coef": 0.1}}  # where all rewards of a group are alike, the bonus still trains
FASTER = replace(FEW, update=replace(FEW.update, learning_rate=0.05), algorithm_options=ALWAYS)
IDS = torch.tensor([[5, 40, 41, 42, 43]])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A run of all weights, and one of adapters, also on the output layer, in bfloat16."""
    folder = tmp_path_factory.mktemp("runs")
    adapters = replace(FASTER, lora_rank=2, lora_alpha=3, lora_rslora=True)
    configs = {
        "full": FASTER,
        "adapters": adapters,
        "head": replace(adapters, lora_targets=("q_proj", "lm_head"), precision="bf16"),
    }
    for name, config in configs.items():
        assert train(config, folder / name).finished
    return {name: folder / name for name in configs}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def loaded(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(str(folder)).network.state_dict()


@pytest.mark.parametrize("name", ["full", "adapters", "head"])
def test_the_exported_model_is_the_one_that_training_ended_with(
    runs: Mapping[str, Path], name: str, tmp_path: Path
) -> None:
    found = export_model(runs[name], tmp_path / "new" / "model")
    assert (found.iteration, found.base) == (2, "")
    before, after = loaded(runs[name] / "model"), loaded(found.folder)
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[key]) for key, tensor in before.items())
    network = AutoModelForCausalLM.from_pretrained(found.folder)
    assert str(network.dtype) == f"torch.{found.dtype}" == f"torch.{'bfloat16' if name == 'head' else 'float32'}"
    with torch.no_grad():
        assert torch.equal(network(IDS).logits, load_model(str(runs[name] / "model")).network(IDS).logits)
    assert AutoTokenizer.from_pretrained(found.folder).chat_template
    assert GenerationConfig.from_pretrained(found.folder).eos_token_id is not None
    settings = model_settings(str(found.folder))
    assert settings is not None and (settings.env, settings.stage) == (FEW.env, "trained")
    assert [file.name for file in found.folder.parent.iterdir()] == ["model"], "nothing else is left"


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings")
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("name", ["adapters", "head"])
def test_peft_loads_exported_adapters(runs: Mapping[str, Path], name: str, tmp_path: Path) -> None:
    found = export_model(runs[name], tmp_path / "adapters", adapters=True)
    assert found.base == str(runs[name] / "warmup") and found.dtype == "float32"
    settings = json.loads((found.folder / "adapter_config.json").read_text("utf8"))
    assert (settings["base_model_name_or_path"], settings["r"], settings["lora_alpha"]) == (found.base, 2, 3)
    base = AutoModelForCausalLM.from_pretrained(found.base)
    with torch.no_grad():
        without = base(IDS).logits
        adapted = PeftModel.from_pretrained(base, found.folder)(IDS).logits
        merged = load_model(str(export_model(runs[name], tmp_path / "merged", dtype="float32").folder)).network
        assert (adapted - without).abs().max() > 0.01
        torch.testing.assert_close(
            adapted, merged(IDS).logits, atol=1e-4 if name == "adapters" else 0.05, rtol=0
        )  # the run of bfloat16 rounded the base


def test_formats_of_exported_weights(runs: Mapping[str, Path], tmp_path: Path) -> None:
    for dtype in ("bfloat16", "float16"):
        tensors = weights(export_model(runs["adapters"], tmp_path / dtype, dtype=dtype).folder)
        assert {str(tensor.dtype) for tensor in tensors.values()} == {f"torch.{dtype}"}
    alone = export_model(runs["adapters"], tmp_path / "alone", adapters=True, dtype="bfloat16").folder
    assert {str(each.dtype) for each in load_file(alone / "adapter_model.safetensors").values()} == {"torch.bfloat16"}


def test_an_earlier_checkpoint_is_exported(runs: Mapping[str, Path], tmp_path: Path) -> None:
    found = export_model(runs["adapters"] / "checkpoints" / "000001", tmp_path / "one")
    assert found.iteration == 1
    last = loaded(runs["adapters"] / "model")
    assert any(not torch.equal(tensor, last[key]) for key, tensor in weights(found.folder).items())


@pytest.mark.parametrize("name", ["adapters", "head"])
def test_a_run_keeps_its_adapters_alone(runs: Mapping[str, Path], name: str) -> None:
    model = runs[name] / "model"
    written = {path.name for path in model.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "turngym.json", "tokenizer.json"} <= written
    assert not written & {"config.json", "model.safetensors"}
    whole = (runs["full"] / "model" / "model.safetensors").stat().st_size
    assert (model / "adapter_model.safetensors").stat().st_size < whole
    assert parameter_count(str(model)) == parameter_count(str(runs["full"] / "model"))
    settings = model_settings(str(model))
    assert settings is not None and (settings.env, settings.stage) == (FEW.env, "trained")


def test_the_model_of_a_moved_run_is_found_with_its_warm_start(runs: Mapping[str, Path], tmp_path: Path) -> None:
    there = loaded(runs["adapters"] / "model")
    moved = Path(shutil.copytree(runs["adapters"], tmp_path / "moved"))
    settings = json.loads((moved / "model" / "adapter_config.json").read_text("utf8"))
    settings["base_model_name_or_path"] = str(tmp_path / "gone" / "warmup")
    (moved / "model" / "adapter_config.json").write_text(json.dumps(settings), "utf8")
    assert all(torch.equal(tensor, there[key]) for key, tensor in loaded(moved / "model").items())


def test_training_continues_from_adapters(runs: Mapping[str, Path], tmp_path: Path) -> None:
    """The base of the second run's adapters is the first run's folder of adapters."""
    config = replace(FASTER, model=str(runs["adapters"] / "model"), lora_rank=2, iterations=1)
    assert train(config, tmp_path / "second").finished
    exported = loaded(export_model(tmp_path / "second", tmp_path / "whole").folder)
    again = loaded(tmp_path / "second" / "model")
    assert all(torch.equal(tensor, again[key]) for key, tensor in exported.items())
    before = loaded(runs["adapters"] / "model")
    assert any(not torch.equal(tensor, before[key]) for key, tensor in again.items())


def test_adapters_that_cannot_be_loaded_say_why(runs: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"`turngym export-model .*adapters --out FOLDER` writes one"):
        make_agent(f"vllm:{runs['adapters'] / 'model'}", AgentSettings())
    with pytest.raises(ModelError, match=r"`turngym export-model .*adapters --out FOLDER` writes one"):
        load_model(str(runs["adapters"] / "checkpoints" / "000002"))
    lone = Path(shutil.copytree(runs["adapters"] / "model", tmp_path / "lone"))
    file = lone / "adapter_config.json"
    settings = json.loads(file.read_text("utf8"))
    file.write_text(json.dumps({**settings, "base_model_name_or_path": str(lone)}), "utf8")
    with pytest.raises(ModelError, match="name themselves as their base model"):
        load_model(str(lone))
    file.write_text(json.dumps({**settings, "use_dora": True}), "utf8")
    with pytest.raises(ModelError, match=r"cannot be used: only plain LoRA is served: use_dora"):
        load_model(str(lone))
    file.write_text(json.dumps({**settings, "r": 2 * settings["r"]}), "utf8")
    with pytest.raises(ModelError, match=rf"have rank {settings['r']}, and adapter_config\.json says"):
        load_model(str(lone))
    file.write_text(json.dumps({**settings, "base_model_name_or_path": str(tmp_path / "gone")}), "utf8")
    with pytest.raises(ModelError, match=r"there is no model at .*gone"):
        load_model(str(lone))
    file.write_text("{}", "utf8")
    with pytest.raises(ModelError, match="does not name the base model"):
        load_model(str(lone))


def test_the_model_of_an_adapter_run_plays_and_is_evaluated(
    runs: Mapping[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = f"hf:{runs['adapters'] / 'model'}"
    assert main(["play", FEW.env, "--agent", agent]) == 0
    assert main(["eval", FEW.env, "--agent", agent, "--episodes", "2", "--out", str(tmp_path / "eval")]) == 0
    assert "error" not in capsys.readouterr().err


def test_what_cannot_be_exported_is_told(runs: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        export_model(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is not a training run"):
        export_model(tmp_path)
    with pytest.raises(ConfigError, match=r"has no low-rank adapters: leave out --adapters\."):
        export_model(runs["full"], tmp_path / "new", adapters=True)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(RunFolderExists, match=r"exists already and is not empty: pass another folder as --to\."):
        export_model(runs["full"], tmp_path / "taken")
    with pytest.raises(RunFolderExists, match="is a file, where a folder is needed"):
        export_model(runs["full"], tmp_path / "taken" / "file" / "below")
    lone = shutil.copytree(runs["full"] / "checkpoints" / "000002", tmp_path / "lone")
    with pytest.raises(ConfigError, match="is a checkpoint outside of its run"):
        export_model(Path(lone))


def test_damage_is_told_and_leaves_nothing(
    runs: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(runs["adapters"], tmp_path / "run"))
    file = run / "checkpoints" / "000002" / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="is empty or damaged"):
        export_model(run, tmp_path / "new")
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(CheckpointError, match="has no checkpoint yet: let it train"):
        export_model(run, tmp_path / "new")
    (run / "config.json").write_text('{"env": 1, "algorithm": 2, "lora_rank": "x"}')
    shutil.copytree(runs["adapters"] / "checkpoints", run / "checkpoints")
    with pytest.raises(CheckpointError, match=r"config\.json is damaged"):
        export_model(run, tmp_path / "new")

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("No space left on device (os error 28)")

    monkeypatch.setattr("turngym.trainers.loop.checkpoints.exporting.save_file", full)
    with pytest.raises(SafetensorError):
        export_model(runs["adapters"], tmp_path / "new", adapters=True)
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_a_run_without_its_model_says_which(runs: Mapping[str, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs["adapters"], tmp_path / "run"))
    shutil.rmtree(run / "warmup")
    config = json.loads((run / "config.json").read_text("utf8"))
    (run / "config.json").write_text(json.dumps({**config, "model": str(tmp_path / "gone")}))
    with pytest.raises(ModelError, match=r"there is no model at .*gone"):
        export_model(run, tmp_path / "new")


def test_the_command_says_what_it_wrote(
    runs: Mapping[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export-model", str(runs["adapters"]), "--out", str(tmp_path / "new")]
    assert main(words) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'new'}: the whole model after 2 iterations, float32\n"
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*words[:2], "--adapters", "--out", str(tmp_path / "adapters")]) == 0
    assert "low-rank adapters of" in capsys.readouterr().out
    assert main(["export-model", str(runs["head"] / "checkpoints" / "000001")]) == 0
    assert (runs["head"] / "exported" / "model.safetensors").is_file()
