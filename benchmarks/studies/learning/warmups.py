"""Supervised warm-ups that several runs begin with: made once for each seed, as long as it takes to play a little."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from run_queue import AT_ONCE, RUNS

from turngym.benchmarks.cli.train import parse_train
from turngym.storage.files import write_json
from turngym.trainers.loop.setup import build_algorithm, initial_model, policy_agent
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.loop.task_factory import make_task


def folder_of(name: str) -> Path:
    """Return the model folder of a warm-up."""
    folder: Path = RUNS / name / "warmup"
    return folder


def found(name: str) -> dict[str, Any]:
    """Return what a warm-up that is done has noted: loss and dev success of every epoch, and its seconds."""
    content: dict[str, Any] = json.loads((RUNS / name / "warmup.json").read_text("utf8"))
    return content


def warm_up(name: str, arguments: Sequence[str], enough: float) -> None:
    """Let a model imitate the expert, epoch by epoch, until it plays well enough or has had all its epochs.

    Args:
        name: Name of the warm-up.
        arguments: Options of ``turngym train``; those of the warm-up count.
        enough: Success of sampled play on dev instances at which it ends; above 1 for all epochs.
    """
    if (RUNS / name / "warmup.json").exists():
        return
    config, _, _ = parse_train(arguments)
    torch.set_num_threads(config.threads)
    start = time.perf_counter()
    task = make_task(config, build_algorithm(config))
    try:
        model = initial_model(config, task.texts)
        played = task.demonstrations(policy_agent(config, model), config.warmup.demonstrations)
        learner = SupervisedLearner(model.network, played, config.warmup, config.seed)
        losses: list[float] = []
        successes: list[float] = []
        while len(losses) < config.warmup.epochs and (not successes or successes[-1] < enough):
            losses.append(learner.run_epoch())
            if enough <= 1:
                successes.append(task.curve_point(model)["eval/success"])
    finally:
        task.close()
    seconds = time.perf_counter() - start
    model.save(folder_of(name))
    noted = {"options": list(arguments), "losses": losses, "dev_success": successes, "seconds": seconds}
    write_json(RUNS / name / "warmup.json", noted)
    print(f"{name}: {seconds:.0f} s, {len(losses)} epochs, dev success {successes[-1:]}", flush=True)


def warm_up_all(
    wanted: Mapping[str, Sequence[str]], enough: float, at_once: int = AT_ONCE
) -> dict[str, dict[str, Any]]:
    """Make the warm-ups that are missing, each in a process of its own; returns what each has noted."""
    with ProcessPoolExecutor(at_once, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(warm_up, name, arguments, enough) for name, arguments in wanted.items()]:
            done.result()
    return {name: found(name) for name in wanted}
