"""Making the task of a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from turngym.envs.multiagent.registration import is_game
from turngym.errors import ConfigError
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.game_task import GameTask
from turngym.trainers.loop.rewarded_task import RewardedTask
from turngym.trainers.loop.rollout_workers.task import RayTask
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
        return RewardedTask(_played(config, algorithm), model, config.seed)
    return _played(config, algorithm)


def _played(config: TrainConfig, algorithm: Algorithm[Any] | None) -> TaskSource:
    """Return the task, played in this process or by workers on a Ray cluster."""
    make = partial(_plain_task, frozenset[Need]() if algorithm is None else algorithm.needs)
    if not config.rollout.ray.workers:
        return make(config)
    if is_game(config.env) and config.self_play.num_past:
        raise ConfigError(
            "past selves are kept in the learner's process: leave out --rollout.ray.workers, or past:N of "
            "--self-play.opponents."
        )
    return RayTask(config, make)


def _plain_task(needs: frozenset[Need], config: TrainConfig) -> TaskSource:
    if is_game(config.env):
        if config.rollout.is_journaled:
            raise ConfigError(
                f"games between seats such as {config.env} are played from deal to end in one piece: leave out "
                "--rollout.schedule async and --rollout.journal."
            )
        return GameTask(config, joint_views=Need.JOINT_VIEWS in needs, final_prompts=Need.VALUES in needs)
    if config.rollout.is_journaled and Need.SNAPSHOTS in needs:
        raise ConfigError(
            f"{config.algorithm} branches off from episodes of its iteration, for which asynchronous rollouts and "
            "journals have no place: take --rollout.schedule lockstep or continuous without --rollout.journal, or a "
            "method without snapshots, such as grpo."
        )
    task = EnvTask(
        config,
        snapshots=Need.SNAPSHOTS in needs,
        entropies=Need.SAMPLED_ENTROPIES in needs,
        final_prompts=Need.VALUES in needs,
    )
    return AsyncTask(task) if config.rollout.is_journaled else task
