"""Verifier by a reward model fitted to recorded episodes."""

from __future__ import annotations

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.verifiers import VERIFIERS, Verifier
from turngym.loading import Wanted, load_object

_LOAD = "turngym.trainers.reward_models.base.verifier:load_verifier"
"""By name, because agents must not import trainers."""


@VERIFIERS.register("reward_model")
def make(argument: str, settings: AgentSettings, agent: Agent) -> Verifier:
    """Return a verifier by a fitted reward model: ``reward_model:FOLDER``.

    Args:
        argument: The folder.
        settings: Settings of the agent.
        agent: Agent.

    Raises:
        MissingExtra: Its packages are not installed.
        ConfigError: No folder is named.
        CheckpointError: The folder has no reward model.
    """
    made: Verifier = load_object(_LOAD, Wanted("a function", "a function", callable))(argument)
    return made
