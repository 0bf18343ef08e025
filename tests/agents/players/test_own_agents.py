"""Agents of users: the example of the README, where there are legal actions and where there are none."""

from collections.abc import Sequence

import gymnasium
import pytest

from turngym.agents import Agent, Decision, Request
from turngym.agents.episodes.evaluate import evaluate
from turngym.errors import ConfigError


class FirstLegal(Agent):
    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [Decision(request.legal_actions[0]) for request in requests]


def test_the_first_legal_action_is_played() -> None:
    env = gymnasium.make("turngym/GuessTheNumber-v0")
    _, info = env.reset(seed=3)
    _, (episode,) = evaluate("turngym/GuessTheNumber-v0", FirstLegal(), seeds=[3], env_kwargs={})
    assert episode.turns[0].action == info["legal_actions"][0]


def test_without_legal_actions_an_agent_learns_what_to_write_instead() -> None:
    wanted = "'Solve the problem.*lists no legal actions.*request.observation.*turngym/Sokoban-v0"
    with pytest.raises(ConfigError, match=wanted):
        evaluate("turngym/MathPythonNoTool-v0", FirstLegal(), seeds=[3], env_kwargs={})
