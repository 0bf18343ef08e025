"""An agent of your own: ``module:package.module.name`` calls ``name(settings)`` of that module."""

from __future__ import annotations

import importlib
from typing import Any

from turngym.agents.backends import BACKENDS, AgentSettings
from turngym.agents.core import Agent
from turngym.errors import ConfigError, UnknownName, nearest


@BACKENDS.register("module")
def make(argument: str, settings: AgentSettings) -> Agent:
    """Return the agent that a function or class of your own makes from the settings.

    Args:
        argument: Dotted path of something that takes :class:`AgentSettings` and returns an agent.
        settings: What it is called with.

    Raises:
        ConfigError: The path is no dotted path, or what it makes is no agent.
        UnknownName: There is no such module, or no such name in it.
    """
    agent = named_object(argument, "backend")(settings)
    if not isinstance(agent, Agent):
        raise ConfigError(f"module:{argument} must make a turngym.agents.core.Agent, got {type(agent).__name__}.")
    return agent


def named_object(argument: str, kind: str) -> Any:
    """Return what a dotted path names.

    Args:
        argument: The path.
        kind: Whose argument it is, for the message.

    Raises:
        ConfigError: It is no dotted path.
        UnknownName: There is no such module, or no such name in it.
    """
    path, _, name = argument.replace(":", ".").rpartition(".")
    if not path:
        raise ConfigError(f"the {kind} module needs a dotted path, got {argument!r}: write module:PACKAGE.MODULE.NAME.")
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        raise UnknownName(
            f"no module named {error.name!r}, which module:{argument} needs: check the spelling."
        ) from error
    if not hasattr(module, name):
        raise UnknownName(
            f"{path} has no {name!r}. {nearest(name, [n for n in vars(module) if not n.startswith('_')])}"
        )
    return getattr(module, name)
