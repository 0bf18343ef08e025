"""A custom verifier: ``module:package.module.Name`` calls ``Name(settings)`` of that module."""

from __future__ import annotations

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.verifiers import VERIFIERS, Verifier, own_verifier
from turngym.loading import dotted_place


@VERIFIERS.register("module")
def make(argument: str, settings: AgentSettings, agent: Agent) -> Verifier:
    """Return a custom verifier, the result of a function or class called with the settings.

    Raises:
        ConfigError: The path is not a dotted path.
        UnknownName: There is no such module, or no such name in it.
    """
    return own_verifier(dotted_place(argument, "verifier"), settings, agent)
