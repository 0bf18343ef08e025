"""Every text game: advice and hidden facts belong to an episode that is under way."""

from typing import Any

import gymnasium
import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.textgames import SPECS
from turngym.errors import ConfigError


def game(env_id: str) -> Any:
    return gymnasium.make(env_id).unwrapped


def to_the_end(env: Any) -> None:
    """Play by the expert until the episode is over."""
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.expert_action())
        over = terminated or truncated


def test_advice_before_the_first_reset_is_refused_with_the_way_out() -> None:
    for env_id in sorted(SPECS):
        with pytest.raises(
            ConfigError, match=rf"{env_id} has no expert action before the first reset\(\): call reset\(\)"
        ):
            game(env_id).expert_action()


def test_advice_after_the_episode_is_refused_until_the_next_one() -> None:
    for env_id in sorted(SPECS):
        env = game(env_id)
        env.reset(seed=0)
        first = env.snapshot()
        advice = env.expert_action()
        to_the_end(env)
        with pytest.raises(ConfigError, match=f"{env_id} has no expert action after the episode has ended: call reset"):
            env.expert_action()
        env.restore(first)
        assert env.expert_action() == advice
        env.reset(seed=1)
        assert isinstance(env.expert_action(), str)


def test_nothing_is_swapped_before_the_first_reset_or_after_the_end() -> None:
    for env_id in sorted(SPECS):
        env = game(env_id)
        assert env.resample_hidden() is False and env.instance == ""
        env.reset(seed=0)
        to_the_end(env)
        before = env.snapshot()
        assert env.resample_hidden() is False and env.snapshot() == before
