"""Construction of a run's task."""

from __future__ import annotations

from functools import partial
from typing import Any

from turngym.envs.multiagent.registration import is_game
from turngym.errors import ConfigError
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.rollout_workers.cluster import Cluster
from turngym.trainers.loop.rollout_workers.player import AsyncRayTask
from turngym.trainers.loop.rollout_workers.task import RayTask
from turngym.trainers.loop.tasks.curriculum_task import CurriculumTask, require_choosable
from turngym.trainers.loop.tasks.first_plays import FirstPlays
from turngym.trainers.loop.tasks.game_task import GameTask, require_roles
from turngym.trainers.loop.tasks.mixture_task import MixtureTask, require_mixable
from turngym.trainers.loop.tasks.rewarded_task import RewardedTask
from turngym.trainers.loop.tasks.starts import require_startable
from turngym.trainers.loop.tasks.task import EnvTask, TaskSource
from turngym.trainers.reward_models import make_reward_model
from turngym.trainers.settings.config import TrainConfig


def make_task(config: TrainConfig, algorithm: Algorithm[Any] | None = None, ranks: Ranks = SINGLE) -> TaskSource:
    """Return the task of a run: a multi-agent game or a single-agent environment.

    Args:
        config: Settings of the run.
        algorithm: Training method; its needs determine the recorded data.
        ranks: The ranks that play the episodes of an iteration together.

    Raises:
        UnknownName: There is no such environment, curriculum or reward model.
        ConfigError: A setting is invalid.
        CheckpointError: The folder of a reward model has no reward model.
    """
    if algorithm is not None and not config.agent.is_used:
        require_roles(config, algorithm)
    if algorithm is not None:
        _require_playable(config, algorithm.needs)
    if config.curriculum:
        require_choosable(config)  # before the vector is created
    model = make_reward_model(config.reward_model) if config.reward_model else None
    task = _shared(config, algorithm, ranks)
    if model is not None:
        task = RewardedTask(task, model, config.seed)
    return CurriculumTask(config, task) if config.curriculum else task


def _require_playable(config: TrainConfig, needs: frozenset[Need]) -> None:
    """Raise if episodes are played where a method cannot mix the policy with another one, or change prompts."""
    settings, what = config.rollout, ""
    reasons = {
        "--rollout.ray.workers": bool(settings.ray.workers),
        "--rollout.schedule async and --rollout.journal": settings.is_journaled,
        "agent programs": config.agent.is_used,
        "games between seats": any(is_game(each.config.env) for each in config.members),
    }
    if Need.MIXTURES in needs:
        what = "plays with a mixture of the policy and its reference, whose networks sample together in this process"
        reasons |= {
            f"--rollout.sampler {settings.sampler}": settings.sampler in ("vllm", "vllm-server"),
            f"--update.sharding {config.update.sharding}": config.update.sharding != "none",
        }
    elif Need.NOTES in needs:
        what = "plays instances once more with another text in the prompt"
        reasons |= {"--env with several environments": bool(config.envs), "--start": bool(config.start)}
    if what and (wrong := [reason for reason, applies in reasons.items() if applies]):
        raise ConfigError(
            f"{config.algorithm} {what}: leave out {', '.join(wrong)}, or take another method, such as dpo."
        )


def _shared(config: TrainConfig, algorithm: Algorithm[Any] | None, ranks: Ranks) -> TaskSource:
    """Return the task: each rank plays its groups, or rank 0 all of them if rollouts are distributed already."""
    settings = config.rollout
    if ranks.size > 1 and (
        settings.ray.workers or settings.is_journaled or settings.sampler in ("vllm", "vllm-server")
    ):
        return FirstPlays(ranks, lambda: _played(config, algorithm, SINGLE))
    return _played(config, algorithm, ranks)


def _played(config: TrainConfig, algorithm: Algorithm[Any] | None, ranks: Ranks) -> TaskSource:
    """Return the task, played in this process or by workers on a Ray cluster."""
    make = partial(_plain_task, frozenset[Need]() if algorithm is None else algorithm.needs, ranks)
    if not config.rollout.ray.workers:
        return make(config)
    if is_game(config.env) and config.self_play.num_past:
        raise ConfigError(
            "frozen copies are kept in the learner's process: leave out --rollout.ray.workers, or past:N of "
            "--self-play.opponents."
        )
    if is_game(config.env) and config.self_play.is_prioritised:
        raise ConfigError(
            "results against opponents are kept in the learner's process: leave out --rollout.ray.workers, or take "
            "--self-play.matching uniform."
        )
    if config.rollout.is_journaled:
        task = make(config)
        assert isinstance(task, AsyncTask)  # other tasks do not support asynchronous rollouts
        return AsyncRayTask(task.task, Cluster(config, make))
    return RayTask(config, make)


def _plain_task(needs: frozenset[Need], ranks: Ranks, config: TrainConfig) -> TaskSource:
    if config.warmup.log and (config.envs or is_game(config.env)):
        raise ConfigError("a log is imitated in one environment with one agent: leave out --warmup.log.")
    if config.envs:
        require_mixable(config)
        return MixtureTask(config, partial(_plain_task, needs, ranks), ranks)
    require_startable(config, needs)
    if config.agent.is_used:
        from turngym.trainers.loop.tasks.agent_task import AgentTask  # imported only for agent programs

        return AgentTask(config, needs, ranks)
    if is_game(config.env):
        if config.rollout.is_journaled:
            raise ConfigError(
                f"games between seats such as {config.env} are played from deal to end in one piece: leave out "
                "--rollout.schedule async and --rollout.journal."
            )
        return GameTask(
            config,
            joint_views=Need.JOINT_VIEWS in needs,
            final_prompts=Need.VALUES in needs,
            situations=Need.SITUATIONS in needs,
            ranks=ranks,
        )
    if config.rollout.is_journaled and Need.SNAPSHOTS in needs:
        raise ConfigError(
            f"{config.algorithm} branches off from episodes of its iteration, for which asynchronous rollouts and "
            "journals have no place: take --rollout.schedule lockstep or continuous without --rollout.journal, or a "
            "method without snapshots, such as grpo."
        )
    if config.rollout.is_journaled and Need.GREEDY in needs:
        raise ConfigError(
            f"{config.algorithm} plays the instances of an iteration once more with greedy decoding, for which "
            "asynchronous rollouts and journals have no place: take --rollout.schedule lockstep or continuous without "
            "--rollout.journal, or another method."
        )
    task = EnvTask(
        config,
        snapshots=Need.SNAPSHOTS in needs,
        entropies=Need.SAMPLED_ENTROPIES in needs,
        final_prompts=Need.VALUES in needs,
        ranks=ranks,
    )
    return AsyncTask(task) if config.rollout.is_journaled else task
