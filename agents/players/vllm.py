"""Agent with vLLM in this process: ``vllm:PATH_OR_NAME``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from turngym.agents.models.sources import is_adapter, whole_model_advice
from turngym.agents.models.vllm.config import VllmConfig, require_vllm
from turngym.agents.players import AGENTS, AgentSettings
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError, ModelError
from turngym.lazy import require

if TYPE_CHECKING:
    from turngym.agents.models.agent import ModelAgent
    from turngym.agents.models.loading import Vocabulary
    from turngym.agents.models.vllm.sampler import VllmSampler

require("transformers")
require("torch")


def _vllm_agent(
    sampler: VllmSampler, vocabulary: Vocabulary, settings: AgentSettings, iteration: int = 0
) -> ModelAgent:
    """Return an agent with a model loaded by vLLM."""
    from turngym.agents.models.agent import ModelAgent

    return ModelAgent(
        vocabulary,
        sampler.generate,
        prompt=PromptConfig.build("the prompt", settings.prompt),
        sampling=Sampling(settings.temperature, settings.top_p, settings.max_new_tokens),
        format=settings.format,
        seed=settings.seed,
        iteration=iteration,
        context=sampler.max_model_len,
    )


@AGENTS.register("vllm")
def make(argument: str, settings: AgentSettings) -> ModelAgent:
    """Return an agent with vLLM and the model in a folder or with a Hub name.

    Args:
        argument: The folder or the name.
        settings: Sampling, prompts, and in ``server`` the fields of :class:`VllmConfig`.

    Raises:
        ConfigError: The argument is missing, or a setting is invalid.
        MissingExtra: vLLM is not installed.
        ModelError: vLLM cannot be started with this model.
    """
    if not argument:
        raise ConfigError("the agent vllm needs a model: write vllm:PATH_OR_NAME.")
    config = VllmConfig.build("vLLM", settings.server)
    if is_adapter(Path(argument)):
        raise ModelError(whole_model_advice(Path(argument)))
    require_vllm()
    from turngym.agents.models.loading import load_vocabulary
    from turngym.agents.models.vllm.sampler import VllmSampler

    vocabulary = load_vocabulary(argument)
    return _vllm_agent(VllmSampler(argument, config, vocabulary.stop_ids), vocabulary, settings)
