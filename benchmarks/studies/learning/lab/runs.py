"""One run of the laboratory: a method, a world, a seed, through the trainer of every training run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from lab.imitation import imitate
from lab.network import lab_model
from lab.task import LabTask, Play
from lab.worlds import World
from turngym.agents.models.loading import LanguageModel
from turngym.errors import DivergenceError, RunStopped
from turngym.seeding import stream_seed
from turngym.trainers.core.algorithm import Algorithm, Need
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
        critic_rate: Learning rate of the critic, if there is one.
        copying: Probability at first that a later token of a turn repeats the one before.
        imitation: Share of the turns that an expert plays, to be imitated before reinforcement begins.
        slips: Probability of a random move of the expert.
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
    imitation: float = 0.0
    slips: float = 0.0


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


class _Log:
    """The learning curve of a run, and the means of its metrics.

    Args:
        measure: Returns the success of the policy as it is.
    """

    def __init__(self, measure: Callable[[], float]) -> None:
        self._measure = measure
        self.curve = [measure()]
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def extend(self, done: float, whole: float) -> None:
        """Measure as often as a share of the run asks for."""
        while len(self.curve) < POINTS and done * (POINTS - 1) >= len(self.curve) * whole:
            self.curve.append(self._measure())

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Take in the metrics of an iteration."""
        for name, value in metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value)
            self._counts[name] = self._counts.get(name, 0) + 1

    def means(self) -> dict[str, float]:
        """Return the mean of every metric."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}


class _Trained(NamedTuple):
    diverged: bool
    iterations: int
    turns: int


def _reinforce(
    setting: Setting, config: TrainConfig, algorithm: Algorithm[Any], task: LabTask, model: LanguageModel, log: _Log
) -> _Trained:
    """Train by reinforcement with the turns that are left.

    Args:
        setting: World and budget.
        config: Settings of the run.
        algorithm: The method.
        task: The world as a task.
        model: The policy.
        log: Gets curve and metrics.
    """
    before = setting.turns - config.max_environment_turns

    def note(record: Mapping[str, Any]) -> None:
        if setting.iterations:
            log.extend(record["iteration"] + 1, setting.iterations)
        else:
            log.extend(before + record["turns_total"], setting.turns)
        log.add(record)

    learner = build_learner(config, model, algorithm)
    with tempfile.TemporaryDirectory() as empty:
        trainer = _Trainer(config, model, learner, task, _Folder(Path(empty)))
        if setting.refresh_every > 1:
            learner.hold_back_sampler()
        diverged = _diverges(trainer, note)
    if trainer.stop_requested:
        raise KeyboardInterrupt  # half a run is not a result
    return _Trained(diverged, trainer.iteration, trainer.turns_total)


def run(setting: Setting, method: Method, rate: float, seed: int) -> dict[str, Any]:
    """Train once; returns the learning curve, and the mean of every metric over the run.

    A run whose weights or losses stop being finite counts as one without success from there on.

    Args:
        setting: World and budget.
        method: The method.
        rate: Learning rate of the policy.
        seed: Seed of the run.
    """
    torch.set_num_threads(1)
    start, config = time.process_time(), config_of(setting, method, rate, seed)
    algorithm, world = build_algorithm(config), setting.world
    snapshots, entropies = Need.SNAPSHOTS in algorithm.needs, Need.SAMPLED_ENTROPIES in algorithm.needs
    play = replace(setting.play, snapshots=snapshots, entropies=entropies)
    weights = stream_seed("weights", seed) % 2**31
    model = lab_model(world.num_actions, world.num_observations, play.turn_tokens, setting.copying, weights)
    task = LabTask(world, play, seed)
    log, found, imitated = _Log(lambda: task.success(model)), _Trained(False, 0, 0), 0
    if setting.imitation:
        planned = round(setting.imitation * setting.turns)
        imitated = imitate(
            task, model, setting.slips, planned, rate, lambda done: log.extend(done * planned, setting.turns)
        )
        log.add({"imitation/turns": imitated})
        config = replace(config, max_environment_turns=max(setting.turns - imitated, 0))
    if setting.iterations or config.max_environment_turns:
        found = _reinforce(setting, config, algorithm, task, model, log)
    curve = [*log.curve, *[0.0] * (POINTS - len(log.curve) if found.diverged else 0)]
    return {
        "diverged": found.diverged,
        "curve": [round(float(point), 4) for point in curve],
        "final": float(np.mean(curve[-3:])),
        "mean": float(np.mean(curve[1:])),
        "metrics": log.means(),
        "iterations": found.iterations,
        "turns": imitated + found.turns,
        "seconds": time.process_time() - start,
    }
