"""Random agent: a legal action if they are enumerated, else random text."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AGENTS, AgentSettings
from turngym.agents.trajectory import Turn
from turngym.envs.spaces import Unicode
from turngym.seeding import stream


class RandomAgent(Agent):
    """Samples uniformly from the legal actions.

    Args:
        seed: Random seed, combined with episode, turn and attempt.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return a random action per request."""
        return [Decision(self._draw(request)) for request in requests]

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Do nothing: the agent has no memory."""

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Return the decision: the agent has no memory."""
        return Decision(action, completion)

    def _draw(self, request: Request) -> str:
        generator = stream(
            "random agent", self.seed, request.episode, request.turn, *[request.attempt] * bool(request.attempt)
        )
        legal = request.info["legal_actions"]
        return str(legal[generator.integers(len(legal))]) if legal else Unicode(generator).sample()


@AGENTS.register("random")
def make(argument: str, settings: AgentSettings) -> RandomAgent:
    """Return a random agent."""
    return RandomAgent(settings.seed)
