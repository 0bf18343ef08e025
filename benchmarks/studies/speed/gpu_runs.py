"""Whole training runs for ``gpu.py``: who samples, on which schedule, and how long everything takes."""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.prompt_text import PromptConfig
from turngym.terminal.console import Console
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.rollout import SamplerName
from turngym.trainers.settings.supervised import SupervisedConfig

_SUMS = ("rollout/tokens", "time/rollout_seconds", "time/update_seconds")
_MEANS = ("time/weight_sync", "time/learner_wait_seconds", "policy/staleness_mean")
LARGEST = ("rollout/weight_gap", "train/logprob_gap")


@dataclass(frozen=True)
class Run:
    """One way of sampling.

    Args:
        name: Its name in the table.
        sampler: What samples.
        sleep: Level at which a server that shares the learner's GPU sleeps while that learns.
        schedule: Whether episodes are played while the learner learns.
    """

    name: str
    sampler: SamplerName
    sleep: Literal[0, 1, 2] = 0
    schedule: Literal["lockstep", "async"] = "lockstep"

    @property
    def lacks(self) -> str:
        """What is not installed here and needed."""
        return "vllm" if self.sampler != "transformers" and importlib.util.find_spec("vllm") is None else ""


RUNS = {
    each.name: each
    for each in (
        Run("own network", "transformers"),
        Run("own network, asynchronous", "transformers", schedule="async"),
        Run("colocated, same process", "vllm"),
        Run("colocated with sleep", "vllm-server", sleep=1),
        Run("served", "vllm-server"),
        Run("asynchronous", "vllm-server", schedule="async"),
    )
}


def settings(run: Run, source: Path, options: argparse.Namespace) -> TrainConfig:
    """Return the settings of a run on a model's folder.

    The learner has the first GPU. Servers have the second one if there is one, and else share the first.
    """
    on_gpu = options.device != "cpu"
    apart = run.sampler == "vllm-server" and not run.sleep and torch.cuda.device_count() > 1
    longest = 512 + options.turns * (64 + options.new_tokens)
    rollout = RolloutConfig(
        groups=options.groups,
        group_size=options.group_size,
        schedule=run.schedule,
        max_new_tokens=options.new_tokens,
        prompt=PromptConfig(mode="conversation", instructions=False, max_prompt_tokens=longest),
        sampler=run.sampler,
        start_servers=int(run.sampler == "vllm-server"),
        served=ServedConfig(sleep=run.sleep, devices=(1,) if apart else ()),
        vllm=VllmConfig(
            max_model_len=longest + options.new_tokens,
            gpu_memory_utilization=0.9 if apart else 0.4,
            kv_cache_gib=0.0 if on_gpu else 0.1,
        ),
    )
    return TrainConfig(
        env_options={"view": "coordinates", "max_turns": options.turns},
        algorithm="grpo",
        algorithm_options={"grpo": {"kl_coef": 0.0}},
        model=str(source),
        iterations=1 + options.updates,
        max_seconds=0,
        control=False,
        checkpoint_every=1 + options.updates,
        precision="bf16" if on_gpu else "fp32",
        device=options.device,
        warmup=SupervisedConfig(demonstrations=0),
        rollout=rollout,
        update=UpdateConfig(
            learning_rate=1e-6, gradient_checkpointing=True, max_micro_batch_tokens=options.micro_batch
        ),
        evaluation=EvaluationConfig(episodes=0, every=0),
    )


def measure_run(run: Run, model: LanguageModel, options: argparse.Namespace) -> dict[str, Any]:
    """Train a model and return figures of the iterations after the first one."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        del model
        target = Path(folder) / "run"
        train(settings(run, Path(folder) / "model", options), target, console=Console(quiet=True))
        records = RunFolder(target).metrics()[1:]
    totals = {name: sum(record[name] for record in records) for name in _SUMS}
    seconds = totals["time/rollout_seconds"] + totals["time/update_seconds"]
    found: dict[str, Any] = {
        "seconds_an_iteration": round(seconds / len(records), 3),
        "rollout_share": round(totals["time/rollout_seconds"] / seconds, 3),
        "sampled_tokens_per_second": round(totals["rollout/tokens"] / seconds, 1),
    }
    for names, over in ((_MEANS, lambda values: sum(values) / len(values)), (LARGEST, max)):
        for name in (name for name in names if name in records[0]):
            found[name] = float(f"{over([record[name] for record in records]):.3g}")
    if options.device != "cpu":
        found["memory_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return found
