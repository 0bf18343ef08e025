"""Agent with a model behind a server of the chat completions API: ``openai:MODEL@URL``."""

from __future__ import annotations

import re

from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.client import ChatServer
from turngym.agents.chat_client.config import OPENAI_HOST, ServerConfig, read_address, read_key, read_prices
from turngym.agents.players import AGENTS, AgentSettings, served_prompt
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError

_DEFAULT_URL = f"https://{OPENAI_HOST}/v1"
_ADDRESS = re.compile(r"[.:/]|^localhost$", re.IGNORECASE)


@AGENTS.register("openai")
def make(argument: str, settings: AgentSettings) -> ServerAgent:
    """Return an agent with a model behind a server.

    Args:
        argument: ``MODEL@URL``, such as ``qwen3-8b@http://localhost:8000/v1``; without a URL, OpenAI's own server.
        settings: Sampling, prompts, and in ``server`` the fields of :class:`ServerConfig`.

    Raises:
        ConfigError: The model, the URL or a setting is invalid, or the key is missing.
    """
    model, url = split_argument(argument)
    config = ServerConfig.build("a server", settings.server)
    address = read_address(url)
    return ServerAgent(
        ChatServer(address, read_key(address, config.key_variable)),
        model,
        config,
        prompt=PromptConfig.build("the prompt", served_prompt(settings.prompt)),
        sampling=Sampling(settings.temperature, settings.top_p, settings.max_new_tokens),
        format=settings.format,
        seed=settings.seed,
        prices=read_prices(config.prices, model, address),
    )


def split_argument(argument: str) -> tuple[str, str]:
    """Return the name of the model and the URL of the server; the name may contain ``@``.

    Raises:
        ConfigError: There is no name, or an address without its scheme.

    >>> split_argument("qwen3-8b@http://localhost:8000/v1")
    ('qwen3-8b', 'http://localhost:8000/v1')
    >>> split_argument("team/model@3")
    ('team/model@3', 'https://api.openai.com/v1')
    """
    found = re.fullmatch(r"(.*)@([A-Za-z][A-Za-z0-9+.-]*://.*)", argument)
    model, url = found.groups() if found else (argument, _DEFAULT_URL)
    before, at, after = model.rpartition("@")
    if found is None and at and _ADDRESS.search(after):
        raise ConfigError(
            f"the URL after @ needs http:// or https://, got {after!r}: write openai:{before}@http://{after}; where "
            f"the @ belongs to the model's name, add the URL, as in openai:{model}@{_DEFAULT_URL}."
        )
    if not model.strip():
        raise ConfigError("the agent openai needs a model: write openai:MODEL@URL, URL like http://localhost:8000/v1.")
    return model, url
