"""A server manager for verl that samples with a transformers model in this process, where verl would ask vLLM."""

from __future__ import annotations

from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from turngym.agents.models.generate import generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling, turn_uniforms


class HFServer(LLMServerClient):  # type: ignore[misc]  # the package has no types
    """Answers one request at a time; every answer is kept in ``answers``, next to the prompt that it was given to.

    Args:
        config: verl's configuration.
        model: The model.
    """

    def __init__(self, config: Any, model: LanguageModel) -> None:
        super().__init__(config)
        self.model = model
        self.answers: list[tuple[list[int], list[int]]] = []

    async def generate(
        self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **other: Any
    ) -> TokenOutput:
        """Sample an answer with its log-probabilities."""
        sampling = Sampling(sampling_params["temperature"], sampling_params["top_p"], sampling_params["max_tokens"])
        uniforms = turn_uniforms(0, 0, len(self.answers), 0, sampling.max_new_tokens)
        answer = generate(self.model.network, [prompt_ids], [uniforms], sampling, self.model.stop_ids)[0]
        self.answers.append((list(prompt_ids), list(answer.ids)))
        return TokenOutput(token_ids=list(answer.ids), log_probs=list(answer.logprobs), stop_reason="completed")
