"""Supervised warm-ups that several runs begin with: made once for each seed, as long as it takes to play a little."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from run_queue import AT_ONCE, RUNS

from turngym.agents.models.loading import LanguageModel
from turngym.benchmarks.cli.train import parse_train
from turngym.storage.files import write_json
from turngym.trainers.loop.setup import build_algorithm, build_supervised, initial_model, policy_agent
from turngym.trainers.loop.task import TaskSource
from turngym.trainers.loop.task_factory import make_task
from turngym.trainers.settings.config import TrainConfig

ALL_EPOCHS = 2.0
"""More success than there is: a warm-up that ends with its epochs."""


def folder_of(name: str) -> Path:
    """Return the model folder of a warm-up."""
    folder: Path = RUNS / name / "warmup"
    return folder


def found(name: str) -> dict[str, Any]:
    """Return what a warm-up that is done has noted: loss and dev success of every epoch, and its seconds."""
    content: dict[str, Any] = json.loads((RUNS / name / "warmup.json").read_text("utf8"))
    return content


def warm_up(name: str, arguments: Sequence[str], enough: float, lessons: Sequence[Sequence[str]] = ()) -> None:
    """Let a model imitate the expert, epoch by epoch, until it plays well enough or has had all its epochs.

    Args:
        name: Name of the warm-up.
        arguments: Options of ``turngym train``; those of the warm-up count.
        enough: Success of sampled play on dev instances at which it ends; above 1 for all epochs.
        lessons: Options of other environments, beside ``arguments``, that are imitated first, one after the other.
    """
    if (RUNS / name / "warmup.json").exists():
        return
    config, _, _ = parse_train(arguments)
    before = [parse_train([*arguments, *lesson])[0] for lesson in lessons]
    torch.set_num_threads(config.threads)
    start, used = time.perf_counter(), time.process_time()
    with ExitStack() as stack:
        tasks = []
        for each in (*before, config):
            tasks.append(make_task(each, build_algorithm(each)))
            stack.callback(tasks[-1].close)
        model = initial_model(config, lambda: [text for task in tasks for text in task.texts()], warms_up=True)
        for each, task in zip(before, tasks, strict=False):
            _imitate(each, task, model)
        losses, successes = _imitate(config, tasks[-1], model, enough)
    noted = {
        "options": list(arguments),
        "lessons": [list(lesson) for lesson in lessons],
        "losses": losses,
        "dev_success": successes,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - used,
    }
    model.save(folder_of(name))
    write_json(RUNS / name / "warmup.json", noted)
    print(f"{name}: {noted['seconds']:.0f} s, {len(losses)} epochs, dev success {successes[-1:]}", flush=True)


def _imitate(
    config: TrainConfig, task: TaskSource, model: LanguageModel, enough: float = ALL_EPOCHS
) -> tuple[list[float], list[float]]:
    """Imitate a task's expert; returns loss and dev success of every epoch, no success where nothing ends by it."""
    played = task.demonstrations(policy_agent(config, model), config.warmup.demonstrations)
    learner = build_supervised(config, model, played)
    losses: list[float] = []
    successes: list[float] = []
    while len(losses) < config.warmup.epochs and (not successes or successes[-1] < enough):
        losses.append(learner.run_epoch())
        if enough <= 1:
            successes.append(task.curve_point(model)["eval/success"])
    return losses, successes


def warm_up_all(
    wanted: Mapping[str, Sequence[str]],
    enough: float,
    at_once: int = AT_ONCE,
    lessons: Sequence[Sequence[str]] = (),
) -> dict[str, dict[str, Any]]:
    """Make the warm-ups that are missing, each in a process of its own; returns what each has noted."""
    with ProcessPoolExecutor(at_once, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(warm_up, name, arguments, enough, lessons) for name, arguments in wanted.items()]:
            done.result()
    return {name: found(name) for name in wanted}
