"""A wrapper, an agent and a player."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AGENTS, AgentSettings
from turngym.envs.multiagent import PLAYERS, Player, SeatView
from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import TextWrapper


@WRAPPERS.register("sample_loud")
class Loud(TextWrapper):
    """Shows every observation in capital letters."""

    name: ClassVar[str] = "sample_loud"
    file_options = worded()

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        return observation.upper()


class LastAgent(Agent):
    """Takes the last legal action."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return it for each request."""
        return [Decision(request.info["legal_actions"][-1]) for request in requests]


@AGENTS.register("sample_last")
def last(argument: str, settings: AgentSettings) -> LastAgent:
    """Return an agent that takes the last legal action."""
    return LastAgent()


@PLAYERS.register("sample_last")
class LastPlayer(Player):
    """Takes the last legal action."""

    name = "sample_last"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        """Return it."""
        return view.legal_actions[-1]
