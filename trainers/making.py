"""Which kind of task a run has."""

from __future__ import annotations

from typing import Any

from turngym.envs.multiagent.registration import is_game
from turngym.trainers.algorithm import Algorithm, Need
from turngym.trainers.config import TrainConfig
from turngym.trainers.game_task import GameTask
from turngym.trainers.task import EnvTask, Task


def make_task(config: TrainConfig, algorithm: Algorithm[Any] | None = None) -> Task:
    """Return what a run trains on: a game between seats, or an environment with one agent.

    Args:
        config: Settings of the run.
        algorithm: What it trains with; its needs decide what is recorded.
    """
    needs = frozenset[Need]() if algorithm is None else algorithm.needs
    if is_game(config.env):
        return GameTask(config, joint_views=Need.JOINT_VIEWS in needs)
    return EnvTask(config, snapshots=Need.SNAPSHOTS in needs, entropies=Need.SAMPLED_ENTROPIES in needs)
