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


@pytest.mark.parametrize("name", ["full", "adapters", "head"])
def test_the_exported_model_is_the_one_that_training_ended_with(
    runs: Mapping[str, Path], name: str, tmp_path: Path
) -> None:
    found = export_model(runs[name], tmp_path / "new" / "model")
    assert (found.iteration, found.base) == (2, "")
    before, after = weights(runs[name] / "model"), weights(found.folder)
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
    last = weights(runs["adapters"] / "model")
    assert any(not torch.equal(tensor, last[key]) for key, tensor in weights(found.folder).items())


def test_what_cannot_be_exported_is_told(runs: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        export_model(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is no training run"):
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
    words = ["export-model", str(runs["adapters"]), "--to", str(tmp_path / "new")]
    assert main(words) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'new'}: the whole model after 2 iterations, float32\n"
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*words[:2], "--adapters", "--to", str(tmp_path / "adapters")]) == 0
    assert "low-rank adapters of" in capsys.readouterr().out
    assert main(["export-model", str(runs["head"] / "checkpoints" / "000001")]) == 0
    assert (runs["head"] / "exported" / "model.safetensors").is_file()
