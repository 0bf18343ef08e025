"""What ``--warmup.precision bf16`` gives supervised learning of SmolLM2-135M on one CPU thread.

    make .venvs/smollm2 && python benchmarks/studies/speed/warmup_precision.py

Two copies of the model, both with float32 weights, imitate the same conversations of a household's solver; one computes
its products in float32, the other in bf16. They take turns with whole epochs, and the medians of processor seconds over
the repeats count, since other work on the machine changes those less than wall seconds. The losses of the last epoch
stand beside them. ``benchmarks/results/warmup_precision.json`` has the figures.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import torch
from update_precision import smollm2

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json
from turngym.trainers.core.rows import build_rows
from turngym.trainers.loop.setup import build_algorithm, build_supervised, policy_agent
from turngym.trainers.loop.task_factory import make_task
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import has_fast_bf16

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "benchmarks" / "results" / "warmup_precision.json"
PRECISIONS = ("fp32", "bf16")
OPTIONS = (
    *("--env", "turngym/HouseholdEasy-v0", "--env-options", "receptacles=6", "distractors=4"),
    *("--rollout.format", "plain", "--rollout.prompt.mode", "conversation", "--rollout.prompt.no-instructions"),
    *("--rollout.prompt.fit", "none", "--rollout.prompt.system", "You are in a household. Write one command a turn."),
    *("--warmup.models", "any", "--warmup.batch-size", "4", "--update.max-micro-batch-tokens", "1024"),
    *("--warmup.learning-rate", "1e-4", "--precision", "bf16", "--threads", "1"),
)


def config_of(precision: str, demonstrations: int) -> TrainConfig:
    """Return the settings of one side."""
    more = ("--warmup.precision", precision, "--warmup.demonstrations", str(demonstrations))
    return parse_train([*OPTIONS, *more])[0]


def conversations(config: TrainConfig, model: LanguageModel) -> Sequence[Trajectory]:
    """Return the solver's episodes in the words that the model reads."""
    with closing(make_task(config, build_algorithm(config))) as task:
        return task.demonstrations(policy_agent(config, model), config.warmup.demonstrations)


def main() -> int:
    """Measure, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--demonstrations", type=int, default=4)
    settings = parser.parse_args()
    torch.set_num_threads(1)
    base = smollm2()
    played = conversations(config_of("fp32", settings.demonstrations), base)
    lengths = [len(row.ids) for row in build_rows(played, with_final_prompts=False)]
    learners = {}
    for name in PRECISIONS:
        model = LanguageModel(copy.deepcopy(base.network), base.tokenizer, base.name)
        learners[name] = build_supervised(config_of(name, settings.demonstrations), model, played)
    seconds: dict[str, list[float]] = {name: [] for name in learners}
    losses = dict.fromkeys(learners, 0.0)
    for repeat in range(settings.repeats + 1):  # the first epoch of each is not counted
        for name, learner in learners.items():
            start = time.process_time()
            losses[name] = learner.run_epoch()
            seconds[name] += [time.process_time() - start] if repeat else []
            print(f"{repeat} {name}: {time.process_time() - start:.1f} s, loss {losses[name]:.3f}", flush=True)
    median = {name: statistics.median(each) for name, each in seconds.items()}
    result = {
        "command": "python benchmarks/studies/speed/warmup_precision.py",
        "machine": {**machine("torch", "transformers"), "has_fast_bf16": has_fast_bf16(torch.device("cpu"))},
        "model": "SmolLM2-135M-Instruct",
        "settings": {**vars(settings), "options": list(OPTIONS), "threads": 1},
        "tokens": {"conversations": len(lengths), "mean": round(statistics.fmean(lengths), 1), "sum": sum(lengths)},
        "processor_seconds": {name: [round(each, 2) for each in found] for name, found in seconds.items()},
        "tokens_per_processor_second": {name: round(sum(lengths) / each, 1) for name, each in median.items()},
        "last_loss": {name: round(loss, 4) for name, loss in losses.items()},
        "speedup": round(median["fp32"] / median["bf16"], 2),
    }
    write_json(TARGET, result)
    print(f"bf16 makes {result['speedup']} times the epochs of fp32")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
