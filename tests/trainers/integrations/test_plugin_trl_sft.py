"""TRL's SFTTrainer, the installed one, reads an export of ours unchanged and trains on it."""

import importlib.metadata
from pathlib import Path

import pytest
import torch
from chat_model_folders import family_folder

from turngym.__main__ import main
from turngym.benchmarks.exports import export

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        not any(importlib.metadata.distributions(name="trl")),
        reason="trl is in .venvs/plugins only: run make test-integration",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluations") / "expert"
    assert main(["eval", "turngym/GuessTheNumber-v0", "--agent", "expert", "--episodes", "8", "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("format", ["sft", "hf"])
def test_sft_trainer_trains_on_the_export(format: str, folder: Path, tmp_path: Path) -> None:
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    files = export(folder, format, tmp_path / ("sft.jsonl" if format == "sft" else "set"), success=True)
    cache = str(tmp_path / "cache")
    if format == "sft":
        rows = load_dataset("json", data_files=str(files[0]), split="train", cache_dir=cache)
    else:
        rows = load_dataset(str(tmp_path / "set"), split="train", cache_dir=cache).select_columns("messages")
    assert len(rows) == 8 and rows.column_names == ["messages"]
    options = {"output_dir": str(tmp_path / "out"), "max_steps": 2, "per_device_train_batch_size": 2}
    options |= {"learning_rate": 1e-3, "report_to": "none", "save_strategy": "no", "use_cpu": True, "bf16": False}
    model = family_folder("qwen", tmp_path / "model")
    trainer = SFTTrainer(model=str(model), args=SFTConfig(**options, disable_tqdm=True), train_dataset=rows)
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    assert trainer.train().training_loss > 0
    assert any(not torch.equal(value, before[name]) for name, value in trainer.model.state_dict().items())
