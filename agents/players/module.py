"""A custom agent: ``module:package.module.name`` calls ``name(settings)`` of that module.

``package.module:name`` and ``path/to/file.py:name`` do the same without the word ``module``.
"""

from __future__ import annotations

from turngym.agents.core import Agent
from turngym.agents.players import AGENTS, AgentSettings, own_agent
from turngym.errors import ConfigError
from turngym.loading import split_place


@AGENTS.register("module")
def make(argument: str, settings: AgentSettings) -> Agent:
    """Return the agent that a custom function or class makes from the settings.

    Args:
        argument: Where it is: ``"package.module.Name"``, ``"package.module:Name"`` or ``"path/to/file.py:Name"``.
        settings: What it is called with, if it takes an argument.

    Raises:
        ConfigError: The path is no dotted path, or what it makes is no agent.
        UnknownName: There is no such module, or no such name in it.
    """
    return own_agent(place_of(argument, "agent"), settings)


def place_of(argument: str, kind: str) -> str:
    """Return ``"package.module:Name"`` for ``"package.module.Name"``.

    Args:
        argument: The path.
        kind: Whose argument it is, for the message.

    Raises:
        ConfigError: It is no dotted path.

    >>> place_of("games.agents.Mine", "agent"), place_of("games/agents.py:Mine", "agent")
    ('games.agents:Mine', 'games/agents.py:Mine')
    """
    path, _, name = argument.rpartition(".")
    if split_place(argument)[0]:
        return argument
    if not path:
        raise ConfigError(f"the {kind} module needs a dotted path, got {argument!r}: write module:PACKAGE.MODULE.NAME.")
    return f"{path}:{name}"
