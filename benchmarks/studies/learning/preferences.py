"""Play, make pairs, train, play better: ``.venvs/plugins/bin/python benchmarks/studies/learning/preferences.py``.

Plan, written before the runs. FrozenLake as in the quickstart, with the rules and the whole conversation as the prompt,
since that is what exported pairs show. Seeds 1 to 3, which share the warm start of 30 demonstrations. Arms, each with
1,920 episodes: ``grpo`` and ``dpo``, 15 iterations of 128 episodes; ``trl``, two rounds of 120 lakes of the train
split, each played eight times with sampled actions, exported as pairs and given to TRL's ``DPOTrainer`` (beta 0.1,
learning rate 1e-4, batches of 16, two epochs). Every model then plays the same 300 lakes of the test split with sampled
actions. Questions, with Student's t over seeds: are dpo and trl better than the warm start, and dpo better than grpo?

Second plan, written after seeds 1 and 2, in which ``trl`` lost 5 and 3 points: most pairs are in the right order,
but invalid actions became more frequent, so likelihood may leave both answers of a pair. Arm ``trl+sft``: the same with
the negative log-likelihood of the chosen answer added, learning rate 3e-4 and four epochs.

Needs trl and datasets: ``make .venvs/plugins``. Finished steps are kept in ``runs/studies/preferences``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.benchmarks.statistics.power import interval
from turngym.benchmarks.studies.harness import ROOT, arguments, write_result

FOLDER = ROOT / "runs" / "studies" / "preferences"
SEEDS = (1, 2, 3)
LAKES = "turngym/FrozenLake-v0"
TRAIN = (
    *("--env", LAKES, "--env-options", "view=coordinates", "hole_share=0.1", "--preset", "quickstart"),
    *("--warmup.demonstrations", "30", "--warmup.epochs", "10", "--rollout.format", "plain", "--rollout.groups", "16"),
    *("--rollout.prompt.mode", "conversation", "--rollout.prompt.instructions", "--no-control", "--max-seconds", "0"),
    *("--evaluation.every", "0", "--evaluation.episodes", "10"),
)
ARMS = {"warm": ("--iterations", "0"), "grpo": ("--algorithm", "grpo"), "dpo": ("--algorithm", "dpo")}
BY_TRL: Mapping[str, Mapping[str, Any]] = {
    "trl": {"num_train_epochs": 2, "learning_rate": 1e-4},
    "trl+sft": {"num_train_epochs": 4, "learning_rate": 3e-4, "loss_type": ["sigmoid", "sft"], "loss_weights": [1, 1]},
}
DIFFERENCES = (("dpo", "warm"), ("trl", "warm"), ("trl+sft", "warm"), ("grpo", "warm"), ("dpo", "grpo"))
_COLUMNS = ["prompt", "chosen", "rejected"]


def turngym(*words: str) -> None:
    """Run a command of turngym.

    Raises:
        CalledProcessError: It failed.
    """
    subprocess.run([sys.executable, "-m", "turngym", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def trained(arm: str, seed: int) -> Path:
    """Return the model of an arm that turngym trains."""
    run = FOLDER / f"{arm}-seed{seed}"
    if not (run / "done").exists():
        shutil.rmtree(run, ignore_errors=True)
        turngym("train", *TRAIN, "--iterations", "15", *ARMS[arm], "--seed", str(seed), "--run-dir", str(run))
    return run / "model"


def played(model: Path, out: Path, *words: str) -> Path:
    """Let a model play with sampled actions, and return the folder of the evaluation."""
    if not (out / "results.json").exists():
        again = ("--resume",) if out.exists() else ()
        turngym("eval", LAKES, "--agent", f"hf:{model}", "--temperature", "1", *words, "--out", str(out), *again)
    return out


def trained_by_trl(arm: str, model: Path, seed: int, rounds: int = 2) -> Path:
    """Return the model after some rounds of playing and of preference training by TRL."""
    for number in range(1, rounds + 1):
        place = FOLDER / f"{arm}-seed{seed}-round{number}"
        words = ("--split", "train", "--episodes", "120", "--repeats", "8", "--seed", str(100 * seed + number))
        attempts = played(model, place / "attempts", *words)
        if not (place / "model" / "turngym.json").exists():
            turngym("export", str(attempts), "--format", "preference", "--out", str(place / "pairs.jsonl"))
            prefer(arm, model, place / "pairs.jsonl", place / "model", seed)
        model = place / "model"
    return model


def prefer(arm: str, model: Path, pairs: Path, out: Path, seed: int) -> None:
    """Train a model by preference with TRL."""
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    rows = load_dataset("json", data_files=str(pairs), split="train", cache_dir=str(out.parent / "cache"))
    options: dict[str, Any] = {"per_device_train_batch_size": 16, "beta": 0.1, **BY_TRL[arm]}
    options |= {"seed": seed, "report_to": "none", "save_strategy": "no", "use_cpu": True, "bf16": False}
    options |= {"gradient_checkpointing": False, "disable_tqdm": True, "output_dir": str(out.parent / "trl")}
    trainer = DPOTrainer(model=str(model), args=DPOConfig(**options), train_dataset=rows.select_columns(_COLUMNS))
    trainer.train()
    trainer.save_model(str(out))
    trainer.processing_class.save_pretrained(str(out))
    shutil.copy(model / "turngym.json", out)  # last: its presence says that the model is whole


def success(model: Path, name: str) -> float:
    """Return the success in points on 300 lakes of the test split."""
    folder = played(model, FOLDER / "evaluations" / name, "--episodes", "300")
    (numbers,) = json.loads((folder / "results.json").read_text())["environments"].values()
    return round(100 * float(numbers["success"]["value"]), 2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the figures."""
    given = arguments(__doc__, "preferences.json").parse_args(argv)
    found: dict[str, list[float]] = {arm: [] for arm in (*ARMS, *BY_TRL)}
    pairs: dict[str, int] = {}
    for seed in SEEDS:
        for arm in ARMS:
            found[arm].append(success(trained(arm, seed), f"{arm}-seed{seed}"))
        for arm in BY_TRL:
            found[arm].append(success(trained_by_trl(arm, trained("warm", seed), seed), f"{arm}-seed{seed}"))
        files = sorted(FOLDER.glob(f"trl*-seed{seed}-round*/pairs.jsonl"))
        pairs |= {file.parent.name: len(file.read_text().splitlines()) for file in files}
        print(seed, {arm: values[-1] for arm, values in found.items()}, flush=True)
    means = {arm: interval(values) for arm, values in found.items()}
    changes = {
        f"{one} - {other}": interval([a - b for a, b in zip(found[one], found[other], strict=True)])
        for one, other in DIFFERENCES
    }
    content = {"seeds": SEEDS, "success": found, "means": means, "differences": changes, "pairs": pairs}
    write_result(given.out, content, "torch", "transformers", "trl")
    return 0


if __name__ == "__main__":
    sys.exit(main())
