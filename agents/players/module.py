"""A custom agent: ``module:package.module.name`` calls ``name(settings)`` of that module.

``package.module:name`` and ``path/to/file.py:name`` do the same without the word ``module``.
"""

from __future__ import annotations

from turngym.agents.core import Agent
from turngym.agents.players import AGENTS, AgentSettings, own_agent
from turngym.loading import dotted_place


@AGENTS.register("module")
def make(argument: str, settings: AgentSettings) -> Agent:
    """Return a custom agent, the result of a function or class called with the settings.

    Args:
        argument: Its location: ``"package.module.Name"``, ``"package.module:Name"`` or ``"path/to/file.py:Name"``.
        settings: Its argument, if it takes one.

    Raises:
        ConfigError: The path is not a dotted path, or the result is not an agent.
        UnknownName: There is no such module, or no such name in it.
    """
    return own_agent(dotted_place(argument, "agent"), settings)
