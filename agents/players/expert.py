"""Agent that plays the environment's solver."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AGENTS, AgentSettings
from turngym.agents.trajectory import Turn
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError, ExpertLost

GIVEN_UP = ""
"""Action without a solution: invalid in every environment, so the episode fails."""


class ExpertAgent(Agent):
    """Agent that plays ``expert_action``; gives up an episode if the solver finds no solution."""

    def __init__(self) -> None:
        self._vector: TextVectorEnv | None = None

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector whose solvers are used."""
        self._vector = vector

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the solver's action for each request."""
        if self._vector is None:
            raise ConfigError("the expert agent asks the environments' solvers: call attach(vector) first.")
        slots = [request.slot for request in requests]
        try:
            actions = self._vector.call("expert_action", indices=slots)
        except ExpertLost:
            actions = tuple(self._advice(self._vector, slot) for slot in slots)
        return [Decision(str(action)) for action in actions]

    def _advice(self, vector: TextVectorEnv, slot: int) -> str:
        try:
            return str(vector.call("expert_action", indices=[slot])[0])
        except ExpertLost:
            return GIVEN_UP

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Do nothing: the environments' solvers know the state."""

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Return the decision: the environments' solvers know the state."""
        return Decision(action, completion)


@AGENTS.register("expert")
def make(argument: str, settings: AgentSettings) -> ExpertAgent:
    """Return an agent that plays the environment's solver."""
    return ExpertAgent()
