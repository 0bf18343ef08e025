"""What methods require of the settings of a run."""

from dataclasses import replace

from turngym.agents.prompt_text import PromptConfig
from turngym.envs.multiagent.registration import is_game
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.settings.config import TrainConfig


def with_required(config: TrainConfig) -> TrainConfig:
    """The settings with what their method requires: a teacher, a game, or prompts that continue."""
    needs = build(config.algorithm).needs
    if Need.TEACHER_LOGPROBS in needs:
        config = replace(config, teacher="ema", teacher_prompt=("hint=player 2 3",))
    if Need.JOINT_VIEWS in needs and not is_game(config.env):
        config = replace(config, env="turngym/KuhnPoker-v0", env_options={})
    if Need.OBSERVATIONS in needs:
        config = replace(config, rollout=replace(config.rollout, prompt=PromptConfig(mode="conversation")))
    return config
