"""One run of the laboratory: a method, a world, a seed, through the trainer of every training run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.network import lab_model
from lab.task import LabTask, Play
from lab.worlds import World
from turngym.errors import DivergenceError, RunStopped
from turngym.seeding import stream_seed
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.unwritten import UnwrittenFolder
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

POINTS = 16
"""Evaluations of a run, at equal steps of its environment turns; the first one is before training."""
UNBOUNDED = 10**6


class _Folder(UnwrittenFolder):
    """A run folder in memory: nothing is written and nothing is read."""

    def metrics(self) -> list[dict[str, Any]]:
        """Return none."""
        return []


class _Trainer(Trainer):
    """The trainer without checkpoints, which a run of seconds does not need."""

    def save(self) -> None:
        """Leave it."""


@dataclass(frozen=True)
class Setting:
    """What a run trains on and how, apart from its method; equal for all arms that are compared.

    Args:
        world: The world.
        turns: Environment turns of the run, those of branches included; 0 if it is bounded by iterations.
        play: How episodes are played.
        epochs: Passes over a batch.
        minibatches: Updates a pass.
        refresh_every: Iterations that are sampled with the same weights.
        iterations: Iterations of the run, for methods with a schedule over them; 0 if it is bounded by turns.
        critic_rate: Step size of the critic, where there is one.
        copying: Probability at first that a later token of a turn repeats the one before.
    """

    world: World
    turns: int
    play: Play = field(default_factory=Play)
    epochs: int = 1
    minibatches: int = 1
    refresh_every: int = 1
    iterations: int = 0
    critic_rate: float = 0.03
    copying: float = 0.5


@dataclass(frozen=True)
class Method:
    """A method with the settings that differ from its page.

    Args:
        name: As ``turngym train --algorithm`` takes it.
        settings: Part of the method -> settings.
    """

    name: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def config_of(setting: Setting, method: Method, rate: float, seed: int) -> TrainConfig:
    """Return the settings of a run as the trainer takes them."""
    return TrainConfig(
        algorithm=method.name,
        algorithm_options={part: dict(options) for part, options in method.settings.items()},
        iterations=setting.iterations or setting.turns // (setting.play.groups * setting.play.group_size) + 1,
        max_seconds=0,
        max_environment_turns=setting.turns,
        seed=seed,
        control=False,
        rollout=RolloutConfig(
            groups=setting.play.groups, group_size=setting.play.group_size, refresh_every=setting.refresh_every
        ),
        update=UpdateConfig(
            learning_rate=rate,
            critic_learning_rate=setting.critic_rate,
            epochs=setting.epochs,
            minibatches=setting.minibatches,
            max_micro_batch_tokens=UNBOUNDED,
        ),
    )


def _diverges(trainer: Trainer, note: Callable[[Mapping[str, Any]], None]) -> bool:
    """Run the trainer to its end; returns whether it had to stop because a number was not finite."""
    try:
        trainer.run(note, lambda warning: None)
    except RunStopped as stopped:
        if isinstance(stopped.__cause__, DivergenceError):
            return True
        raise
    return False


def run(setting: Setting, method: Method, rate: float, seed: int) -> dict[str, Any]:
    """Train once; returns the learning curve, and the mean of every metric over the run.

    A run whose weights or losses stop being finite counts as one without success from there on.

    Args:
        setting: World and budget.
        method: The method.
        rate: Step size of the policy.
        seed: Seed of the run.
    """
    torch.set_num_threads(1)
    start, config = time.process_time(), config_of(setting, method, rate, seed)
    algorithm = build_algorithm(config)
    play = replace(
        setting.play,
        snapshots=Need.SNAPSHOTS in algorithm.needs,
        entropies=Need.SAMPLED_ENTROPIES in algorithm.needs,
    )
    world = setting.world
    weights = stream_seed("weights", seed) % 2**31
    model = lab_model(world.num_actions, world.num_observations, play.turn_tokens, setting.copying, weights)
    task, learner = LabTask(world, play, seed), build_learner(config, model, algorithm)
    curve, sums, counts = [task.success(model)], {}, {}  # type: tuple[list[float], dict[str, float], dict[str, int]]

    def note(record: Mapping[str, Any]) -> None:
        done, whole = record["turns_total"], setting.turns
        if setting.iterations:
            done, whole = record["iteration"] + 1, setting.iterations
        while len(curve) < POINTS and done * (POINTS - 1) >= len(curve) * whole:
            curve.append(task.success(model))
        for name, value in record.items():
            sums[name] = sums.get(name, 0.0) + float(value)
            counts[name] = counts.get(name, 0) + 1

    with tempfile.TemporaryDirectory() as empty:
        trainer = _Trainer(config, model, learner, task, _Folder(Path(empty)))
        if setting.refresh_every > 1:
            learner.hold_back_sampler()
        diverged = _diverges(trainer, note)
    if trainer.stop_requested:
        raise KeyboardInterrupt  # half a run is not a result
    curve += [0.0] * (POINTS - len(curve)) if diverged else []
    return {
        "diverged": diverged,
        "curve": [round(float(point), 4) for point in curve],
        "final": float(np.mean(curve[-3:])),
        "mean": float(np.mean(curve[1:])),
        "metrics": {name: sums[name] / counts[name] for name in sums},
        "iterations": trainer.iteration,
        "turns": trainer.turns_total,
        "seconds": time.process_time() - start,
    }
