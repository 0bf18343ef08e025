"""Agents: players, prompts, the token log, the rollout loop and evaluation.

A custom agent is one class, which every command accepts as ``path/to/file.py:Class``:

>>> from turngym.agents import Agent, Decision
>>> class FirstLegal(Agent):
...     def act(self, requests):
...         return [Decision(request.legal_actions[0]) for request in requests]
"""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.core import Agent, Decision, Request
    from turngym.agents.episodes.groups import group_specs, play_groups
    from turngym.agents.models.loading import LanguageModel, load_model
    from turngym.agents.players import AgentSettings, make_agent
    from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.players": ("AgentSettings", "make_agent"),
            "turngym.agents.core": ("Agent", "Decision", "Request"),
            "turngym.agents.episodes.groups": ("group_specs", "play_groups"),
            "turngym.agents.models.loading": ("LanguageModel", "load_model"),
            "turngym.agents.trajectory": ("EpisodeSpec", "Trajectory", "Turn"),
        },
    )

__all__ = [
    "Agent",
    "AgentSettings",
    "Decision",
    "EpisodeSpec",
    "LanguageModel",
    "Request",
    "Trajectory",
    "Turn",
    "group_specs",
    "load_model",
    "make_agent",
    "play_groups",
]
