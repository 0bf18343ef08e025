"""The registry of agents, described as ``name`` or ``name:argument``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from turngym.agents.core import Agent
from turngym.errors import ConfigError, UnknownName
from turngym.loading import Wanted, call_with, is_file, is_own, load_object
from turngym.registry import Registry
from turngym.wrappers.actions.action_format import AUTO


@dataclass(frozen=True)
class AgentSettings:
    """Settings of agents; each agent reads those it needs.

    Args:
        seed: Seed of everything the agent samples.
        format: Name of the action format.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus sampling threshold.
        max_new_tokens: Maximum completion length in tokens.
        prompt: Fields of :class:`turngym.agents.prompt_text.PromptConfig`.
        server: Fields of :class:`turngym.agents.chat_client.config.ServerConfig`, or of
            :class:`turngym.agents.models.vllm.config.VllmConfig` for the agent ``vllm``, or ``dtype`` and ``device`` of
            :func:`turngym.agents.models.loading.load_model`, ``cache_tokens`` and ``draft_tokens`` for the agent
            ``hf``.
        style: Name of a style of :data:`turngym.agents.prompting.styles.STYLES`, with options as in
            ``summary:budget=1500``.
    """

    seed: int = 0
    format: str = AUTO
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    prompt: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    style: str = "plain"


class AgentFactory(Protocol):
    """Factory of agents from the argument after the colon, such as a path."""

    def __call__(self, argument: str, settings: AgentSettings) -> Agent:
        """Return the agent."""
        ...


_SERVED = "openai"


def served_prompt(prompt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prompt settings of a chat model behind a server: ``conversation`` mode unless a window is given.

    >>> served_prompt({}), served_prompt({"history": 3})
    ({'mode': 'conversation'}, {'mode': 'window', 'history': 3})
    """
    return {"mode": "window" if "history" in prompt else "conversation", **prompt}


AGENTS: Registry[AgentFactory] = Registry("agent", "turngym.agents.players", extra="train")


_AGENT = Wanted(
    "an agent",
    "a class of turngym.agents.Agent, or a function that makes one",
    lambda found: issubclass(found, Agent) if isinstance(found, type) else callable(found),
)


def settings_for(description: str, env: str = "", **asked: Any) -> AgentSettings:
    """Return the settings of an agent: explicit ones, then those of its model's training, then the defaults.

    Args:
        description: ``name`` or ``name:argument``; the argument may be the folder of a model that turngym trained.
        env: Environment to play, for a model trained on several.
        **asked: Fields of :class:`AgentSettings`; None means not given; entries of ``prompt`` are merged separately.

    Raises:
        ConfigError: The folder's training settings cannot be used.

    >>> settings_for("random", seed=3, format=None) == AgentSettings(seed=3)
    True
    """
    from turngym.agents.models.settings import model_settings  # imported only when agents are created

    chosen = {name: value for name, value in asked.items() if value is not None}
    trained = model_settings(description.partition(":")[2], env)
    if description.partition(":")[0] == _SERVED:
        chosen["prompt"] = served_prompt(chosen.get("prompt", {}))
    if trained is None:
        return AgentSettings(**chosen)
    known = trained.agent_options()
    prompt = {**known["prompt"], **chosen.get("prompt", {})}
    return AgentSettings(**{**known, **chosen, "prompt": prompt})


def make_agent(description: str, settings: AgentSettings | None = None) -> Agent:
    """Return the agent of a description.

    Args:
        description: ``"name"`` or ``"name:argument"`` of an agent, or ``"module:Name"`` or
            ``"path/to/file.py:Name"`` for a custom agent.
        settings: Its settings; by default those of the model's training, see :func:`settings_for`.

    Raises:
        UnknownName: There is no such agent, module, file, or name in it.
        ConfigError: The result is not an agent, or an argument is invalid.

    >>> type(make_agent("random")).__name__
    'RandomAgent'
    """
    chosen = settings or settings_for(description)
    agent = own_agent(description, chosen) if is_own(description, AGENTS) else _built_in(description, chosen)
    if chosen.style == "plain":
        return agent
    from turngym.agents.players.styled import styled  # imported only when a style is used

    return styled(agent, chosen.style, chosen)


def _built_in(description: str, settings: AgentSettings) -> Agent:
    name, _, argument = description.partition(":")
    try:
        return AGENTS[name](argument, settings)
    except UnknownName as error:
        if AGENTS.has(name):
            raise
        if not argument and is_file(name):
            raise UnknownName(f"{name} is a file. Name a class or function in it, as in {name}:Name.") from error
        if not argument and Path(name, "config.json").is_file():
            raise UnknownName(f"{name} is a folder and no agent. Did you mean 'hf:{name}'?") from error
        if not argument:
            raise
        raise UnknownName(f"{error} There is no module of that name either, nor a file {name}.py:Name.") from error


def own_agent(description: str, settings: AgentSettings) -> Agent:
    """Return a custom agent; one registered by its module gets no argument.

    Args:
        description: ``"module:Name"``, ``"module:id"`` or ``"path/to/file.py:Name"``.
        settings: Its settings.

    Raises:
        UnknownName: There is no such module, file, or name in it.
        ConfigError: It is not an agent.
    """
    found = load_object(description, _AGENT, AGENTS)
    if AGENTS.holds(found):
        return cast("Agent", found("", settings))
    agent = call_with(found, settings)
    if not isinstance(agent, Agent):
        raise ConfigError(f"{description} must make a turngym.agents.Agent, got {type(agent).__name__}.")
    return agent
