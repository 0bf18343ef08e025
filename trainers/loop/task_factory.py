"""Making the task of a run."""

from __future__ import annotations

from typing import Any

from turngym.envs.multiagent.registration import is_game
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.loop.game_task import GameTask
from turngym.trainers.loop.rewarded_task import RewardedTask
from turngym.trainers.loop.task import EnvTask, TaskSource
from turngym.trainers.reward_models import make_reward_model
from turngym.trainers.settings.config import TrainConfig


def make_task(config: TrainConfig, algorithm: Algorithm[Any] | None = None) -> TaskSource:
    """Return what a run trains on: a game between seats, or an environment with one agent.

    Args:
        config: Settings of the run.
        algorithm: What it trains with; its needs decide what is recorded.

    Raises:
        UnknownName: There is no such environment or reward model.
        ConfigError: A setting is wrong.
        CheckpointError: The folder of a reward model holds none.
    """
    if config.reward_model:
        model = make_reward_model(config.reward_model)  # a wrong one raises before anything is played
        return RewardedTask(_plain_task(config, algorithm), model, config.seed)
    return _plain_task(config, algorithm)


def _plain_task(config: TrainConfig, algorithm: Algorithm[Any] | None) -> TaskSource:
    needs = frozenset[Need]() if algorithm is None else algorithm.needs
    if is_game(config.env):
        return GameTask(config, joint_views=Need.JOINT_VIEWS in needs, final_prompts=Need.VALUES in needs)
    return EnvTask(
        config,
        snapshots=Need.SNAPSHOTS in needs,
        entropies=Need.SAMPLED_ENTROPIES in needs,
        final_prompts=Need.VALUES in needs,
    )
