"""Requirements of methods on environments, prompts and teachers, checked at startup."""

from __future__ import annotations

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.registration import game_class, is_game
from turngym.errors import ConfigError
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.engine.lessons import piece_of
from turngym.trainers.engine.teachers import require_teacher
from turngym.trainers.settings.config import TrainConfig

_MOST_WAITING = 100_000


def require_kind(config: TrainConfig, algorithm: Algorithm[object]) -> None:
    """Raise if a method does not support the kind of environment or its prompts.

    Raises:
        ConfigError: The method does not support it.
    """
    if Need.SNAPSHOTS in algorithm.needs and is_game(config.env):
        raise ConfigError(
            f"{config.algorithm} branches from the middle of episodes, and games between seats such as {config.env} "
            "are played from deal to end. Take a method without snapshots, such as grpo or mappo, or an environment "
            "with one agent."
        )
    if Need.SITUATIONS in algorithm.needs and not _has_speech(config.env):
        raise ConfigError(
            f"{config.algorithm} trains what players say to each other, and nobody speaks in {config.env}: train on a "
            "game of talk such as turngym/Werewolf-v0, or take another method."
        )
    if Need.JOINT_VIEWS in algorithm.needs and not is_game(config.env):
        raise ConfigError(
            f"{config.algorithm} needs what all seats of a game know, and {config.env} has one agent: train on a game "
            "such as turngym/KuhnPoker-v0, or take ppo."
        )
    if Need.OBSERVATIONS in algorithm.needs and config.rollout.prompt.mode == "window" and not config.agent.is_used:
        raise ConfigError(
            f"{config.algorithm} learns to predict what prompts add after an answer, and with a new prompt per turn "
            "nothing is added: pass --rollout.prompt.mode conversation, or leave the method out."
        )


def _has_speech(env: str) -> bool:
    """Return True if an environment is a game in which seats send messages to others."""
    return is_game(env) and game_class(env).is_speech is not Game.is_speech


def require_own_teacher(config: TrainConfig, algorithm: Algorithm[object]) -> None:
    """Raise if a method's teacher is missing, or a teacher is set that the method does not use.

    Raises:
        ConfigError: Either is the case.
    """
    if Need.TEACHER_LOGPROBS in algorithm.needs:
        require_teacher(config.algorithm, config.teacher or None)
    elif config.teacher:
        raise ConfigError(
            f"{config.algorithm} does not learn from a teacher: leave out --teacher, or take a method or modifier that "
            f"does, such as --algorithm opd or --algorithm {config.algorithm}+opd_advantage."
        )
    for piece in config.teacher_prompt:
        piece_of(piece)
    if "sibling" in config.teacher_prompt and config.rollout.group_size < 2:
        raise ConfigError(
            "--teacher-prompt sibling shows another episode of the group: pass --rollout.group-size 2 or more."
        )


def untrained_warning(config: TrainConfig, algorithm: Algorithm[object]) -> str:
    """Return a warning if the run ends before the method updates the policy; empty otherwise.

    >>> from turngym.trainers.algorithms import build
    >>> untrained_warning(TrainConfig(algorithm="rloo+offline", iterations=3), build("rloo+offline")).partition(":")[0]
    'rloo+offline leaves the policy as it is in its first 8 iterations, and the run has 3'
    >>> untrained_warning(TrainConfig(), build("gigpo"))
    ''
    """
    if not config.iterations or any(map(algorithm.trains_policy, range(config.iterations))):
        return ""
    later = range(config.iterations, config.iterations + _MOST_WAITING)
    first = next((f"in its first {n} iterations" for n in later if algorithm.trains_policy(n)), "in every iteration")
    return (
        f"{config.algorithm} leaves the policy as it is {first}, and the run has {config.iterations}: take more "
        "--iterations, or see its settings for that number."
    )
