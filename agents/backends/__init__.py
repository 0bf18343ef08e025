"""What picks actions: a name, and after a colon what the backend needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from turngym.agents.core import Agent
from turngym.registry import Registry


@dataclass(frozen=True)
class AgentSettings:
    """Settings that an agent is built with; a backend reads those that concern it.

    Args:
        seed: Seed of everything the agent draws.
        format: Name of the action format.
        temperature: Sampling temperature; 0 is greedy.
        top_p: Nucleus share.
        max_new_tokens: Limit of a completion's length.
        prompt: Fields of :class:`turngym.agents.prompt_text.PromptConfig`.
        server: Fields of :class:`turngym.agents.server_config.ServerConfig`, or of
            :class:`turngym.agents.vllm_config.VllmConfig` for the backend ``vllm``.
        style: Name of a style of :data:`turngym.agents.styles.STYLES`, with options as in ``summary:budget=1500``.
    """

    seed: int = 0
    format: str = "tag"
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    prompt: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    style: str = "plain"


class Backend(Protocol):
    """Builds an agent from the text after the colon, such as a path."""

    def __call__(self, argument: str, settings: AgentSettings) -> Agent:
        """Return the agent."""
        ...


BACKENDS: Registry[Backend] = Registry("backend", "turngym.agents.backends", extra="train")


def make_agent(description: str, settings: AgentSettings | None = None) -> Agent:
    """Return the agent that ``name`` or ``name:argument`` describes.

    >>> type(make_agent("random")).__name__
    'RandomAgent'
    """
    name, _, argument = description.partition(":")
    chosen = settings or AgentSettings()
    agent = BACKENDS[name](argument, chosen)
    if chosen.style == "plain":
        return agent
    from turngym.agents.styled_agent import styled  # only those who want a style need what it imports

    return styled(agent, chosen.style)
