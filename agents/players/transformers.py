"""Agent with a transformers model in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.agents.players import AGENTS, AgentSettings
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError, nearest
from turngym.lazy import require

if TYPE_CHECKING:
    from turngym.agents.models.agent import ModelAgent
    from turngym.agents.models.loading import LanguageModel

require("transformers")
require("torch")

_LOADING = ("dtype", "device")
_SAMPLING = ("cache_tokens", "draft_tokens")


def transformers_agent(model: LanguageModel, settings: AgentSettings, iteration: int = 0) -> ModelAgent:
    """Return an agent with a loaded model.

    Raises:
        ConfigError: Drafting of tokens is configured but not supported by the model.
    """
    from turngym.agents.models.agent import ModelAgent
    from turngym.agents.models.sampler import Sampler

    cache, drafts = (int(settings.server.get(name, 0)) for name in _SAMPLING)
    if model.pictures is not None:
        if drafts:
            raise ConfigError(f"draft_tokens is {drafts}, and nothing is drafted for models with images. Leave it out.")
        from turngym.agents.models.vision.agent import VisionAgent  # imported only for vision models

        return VisionAgent(
            model,
            model.pictures,
            PromptConfig.build("the prompt", settings.prompt),
            Sampling(settings.temperature, settings.top_p, settings.max_new_tokens),
            settings.format,
            settings.seed,
            iteration,
        )

    prompt = PromptConfig.build("the prompt", settings.prompt)
    appends = prompt.mode == "conversation"
    generate = model.generate or Sampler(model, cache, drafts, appends=appends)
    return ModelAgent(
        model,
        generate,
        prompt=prompt,
        sampling=Sampling(settings.temperature, settings.top_p, settings.max_new_tokens),
        format=settings.format,
        seed=settings.seed,
        iteration=iteration,
        context=model.context,
        most_sequences=generate.most_sequences if appends and isinstance(generate, Sampler) else None,
    )


@AGENTS.register("transformers")
def make(argument: str, settings: AgentSettings) -> ModelAgent:
    """Return an agent with the model at a path or with a Hub name.

    Args:
        argument: The path or the name.
        settings: Sampling, prompts, and in ``server`` the format and the device of :func:`load_model`, and
            ``cache_tokens`` and ``draft_tokens`` of :class:`~turngym.agents.models.sampler.Sampler`.

    Raises:
        ConfigError: The argument is missing, or a setting is invalid.
    """
    from turngym.agents.models.loading import load_model

    if not argument:
        raise ConfigError("the agent transformers needs a model: write transformers:PATH_OR_NAME.")
    known = (*_LOADING, *_SAMPLING)
    for key in settings.server:
        if key not in known:
            raise ConfigError(f"a model in this process has no setting {key!r}. {nearest(key, known)}")
    loading = {key: str(value) for key, value in settings.server.items() if key in _LOADING}
    return transformers_agent(load_model(argument, **loading), settings)
