"""TRL's DPOTrainer, the installed one, reads pairs of ours unchanged and learns to prefer the chosen answers."""

import importlib.metadata
from pathlib import Path

import pytest
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


def test_dpo_trainer_learns_from_the_pairs(tmp_path: Path) -> None:
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    words = ["eval", "turngym/GuessTheNumber-v0", "--agent", "random", "--episodes", "9", "--repeats", "6"]
    assert main([*words, "--option", "high=9", "--out", str(tmp_path / "played")]) == 0
    (file,) = export(tmp_path / "played", "preference", tmp_path / "pairs.jsonl")
    rows = load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(rows) >= 4 and {"prompt", "chosen", "rejected"} <= set(rows.column_names)
    options = {"output_dir": str(tmp_path / "out"), "max_steps": 12, "per_device_train_batch_size": 4}
    options |= {"learning_rate": 1e-2, "report_to": "none", "save_strategy": "no", "use_cpu": True, "bf16": False}
    options |= {"logging_steps": 1, "gradient_checkpointing": False, "disable_tqdm": True}
    model = family_folder("qwen", tmp_path / "model")
    trainer = DPOTrainer(model=str(model), args=DPOConfig(**options), train_dataset=rows)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[0] == pytest.approx(0.6931, abs=1e-3) and sum(losses[-4:]) < sum(losses[:4]) - 0.1
