"""Agent with a fixed list of actions."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AGENTS, AgentSettings
from turngym.errors import ConfigError


class ScriptedAgent(Agent):
    """Agent that plays entry ``k`` of a script in turn ``k``, and the last entry after its end.

    Args:
        actions: The script, at least one action.
    """

    def __init__(self, actions: Sequence[str]) -> None:
        if not actions:
            raise ConfigError("a scripted agent needs at least one action, got none: pass scripted:up,left,...")
        self.actions = tuple(actions)

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Return the decision: the script depends only on the turn."""
        return Decision(action, completion)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the script's entry for each request."""
        return [Decision(self.actions[min(request.turn, len(self.actions) - 1)]) for request in requests]


@AGENTS.register("scripted")
def make(argument: str, settings: AgentSettings) -> ScriptedAgent:
    """Return an agent that plays comma-separated actions."""
    return ScriptedAgent([action for action in argument.split(",") if action])
