"""Imitating an expert of a maze that sometimes errs, at the cost of the turns that it plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.task import LabTask
from lab.worlds import Maze, Numbers
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.settings.supervised import SupervisedConfig

UNBOUNDED = 10**6
PASSES = 20
"""Updates, each over all demonstrations: about as many as reinforcement makes with the same turns."""


@dataclass(frozen=True)
class Expert:
    """Walks to the goal; with a probability of ``slips`` it makes a random move instead."""

    maze: Maze
    slips: float

    def log_probabilities(self) -> Numbers:
        """Return the log-probability of each move in each state, ``[state, move]``."""
        after = self.maze.distances_after()
        best = after == after.min(1, keepdims=True)
        found = (1 - self.slips) * best / best.sum(1, keepdims=True) + self.slips / after.shape[1]
        return np.asarray(np.log(np.maximum(found, 1e-12)))


@dataclass(frozen=True)
class _Playing:
    """What an expert looks like to a task."""

    network: Any


def demonstrations(task: LabTask, slips: float, turns: int) -> tuple[list[Trajectory], int]:
    """Return the demonstrations that reach the goal, and the turns that all of them took, at least ``turns``."""
    kept: list[Trajectory] = []
    taken = 0
    for number in range(turns):
        if taken >= turns:
            break
        played = task.gather(_Playing(Expert(task.world, slips)), number, 1)
        taken += sum(len(each.turns) for each in played)
        kept += [each for each in played if each.success]
    return kept, taken


def imitate(
    task: LabTask, model: LanguageModel, slips: float, turns: int, rate: float, note: Callable[[float], None]
) -> int:
    """Fit the policy to the demonstrations that a number of turns gives; returns the turns.

    Args:
        task: The task.
        model: The policy.
        slips: Probability of a random move of the expert.
        turns: Turns that the expert plays.
        rate: Learning rate.
        note: Called after each update with the share of them that is done.
    """
    played, taken = demonstrations(task, slips, turns)
    if played:
        config = SupervisedConfig(learning_rate=rate, batch_size=UNBOUNDED)
        learner = SupervisedLearner(model.network, played, config, task.seed)
        for number in range(1, PASSES + 1):
            learner.run_epoch()
            note(number / PASSES)
    note(1.0)
    return taken
