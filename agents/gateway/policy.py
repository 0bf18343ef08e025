"""The policy behind a gateway, from the description of an agent."""

from __future__ import annotations

from typing import Any

from turngym.agents.gateway.service import Gateway
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import Sampler
from turngym.agents.players import AGENTS, make_agent, settings_for
from turngym.errors import ConfigError


def gateway_of(model: str, server: dict[str, Any] | None = None, **options: Any) -> Gateway:
    """Return a gateway whose policy is loaded from a folder or the hub.

    Args:
        model: ``hf:PATH_OR_NAME`` or ``vllm:PATH_OR_NAME``; without the name of a backend it is ``hf``.
        server: How it is loaded: ``dtype`` and ``device``, or the start-up options of vLLM.
        **options: Arguments of :class:`Gateway`.

    Raises:
        ConfigError: It is not a language model in this process.
        ModelError: It cannot be loaded.
    """
    name = model.partition(":")[0]
    description = model if AGENTS.has(name) and ":" in model else f"hf:{model}"
    agent = make_agent(description, settings_for(description, server=server or None))
    if not isinstance(agent, ModelAgent):
        raise ConfigError(
            f"{model} is not a language model in this process: pass hf:PATH_OR_NAME or vllm:PATH_OR_NAME."
        )
    generate = agent.generate
    if isinstance(generate, Sampler):
        generate = generate.appending()  # requests of agents append to one another
    return Gateway(agent.model, generate, context=agent.context, prompt=agent.prompt, **options)


def gateway_for(model: LanguageModel, **options: Any) -> Gateway:
    """Return a gateway for a model that is already loaded, such as the one that is trained.

    Args:
        model: The model.
        **options: Arguments of :class:`Gateway`.
    """
    generate = model.generate or Sampler(model, appends=True)
    return Gateway(model, generate, context=model.context, **options)
