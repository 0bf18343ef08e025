"""Agent programs whose model is that of an agent."""

from __future__ import annotations

from contextlib import AbstractContextManager

from turngym.agents.agent_program import ProgramConfig
from turngym.agents.core import Agent
from turngym.agents.gateway.limits import GatewayLimits, GatewayRules
from turngym.agents.gateway.programs.agent import ProgramAgent, playing
from turngym.agents.gateway.service import Gateway
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.sampler import Sampler
from turngym.errors import ConfigError
from turngym.wrappers.actions.action_format import action_format


def programs_of(agent: Agent, config: ProgramConfig) -> AbstractContextManager[ProgramAgent]:
    """Return programs that ask an agent's model, with its sampling, chat template and seed.

    Args:
        agent: The agent; it plays nothing itself.
        config: Settings of programs.

    Raises:
        ConfigError: It has no language model in this process.
    """
    if not isinstance(agent, ModelAgent):
        raise ConfigError(
            "an agent program asks a language model in this process: pass --agent hf:PATH_OR_NAME or vllm:PATH_OR_NAME."
        )
    generate = agent.generate
    if isinstance(generate, Sampler):
        generate = Sampler(generate.model, appends=True)  # requests of agents append to one another
    gateway = Gateway(
        agent.model,
        generate,
        context=agent.context,
        limits=GatewayLimits(max_new_tokens=agent.sampling.max_new_tokens),
        rules=GatewayRules(temperature=agent.sampling.temperature, top_p=agent.sampling.top_p),
        prompt=agent.prompt,
        seed=agent.seed,
    )
    gateway.iteration = agent.iteration
    written = action_format(agent.format)
    return playing(gateway, config, lambda said: written.read(said, agent.thinking) or said.strip())
