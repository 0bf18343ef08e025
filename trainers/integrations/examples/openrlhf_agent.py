"""OpenRLHF's agent executor on turngym's episodes, with a small model where OpenRLHF has its vLLM engine.

In a real run this file would be what ``--train.agent_func_path`` names: only ``AgentExecutor`` counts then.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tiny_model import ENV_ID, SETTINGS, talks, tiny_model

from turngym.agents.models.generate import generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.trainers.integrations.openrlhf import TurngymExecutor, openrlhf_rows


class AgentExecutor(TurngymExecutor):
    """Plays with the default settings."""


class Engine:
    """Answers as vLLM does; every answer is kept next to the prompt that it was given to."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.answers: list[tuple[list[int], list[int]]] = []

    async def generate(self, prompt_ids: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        """Sample one answer with its log-probabilities."""
        sampling = Sampling(1.0, 1.0, min(params.max_tokens, 24))
        uniforms = turn_uniforms(1, 0, len(self.answers), 0, sampling.max_new_tokens)
        answer = generate(self.model.network, [prompt_ids], [uniforms], sampling, self.model.stop_ids)[0]
        self.answers.append((list(prompt_ids), list(answer.ids)))
        logprobs = [{i: SimpleNamespace(logprob=p)} for i, p in zip(answer.ids, answer.logprobs, strict=True)]
        text = self.model.tokenizer.decode(list(answer.ids))
        found = SimpleNamespace(token_ids=list(answer.ids), text=text, finish_reason="stop", logprobs=logprobs)
        return SimpleNamespace(outputs=[found])


def main() -> tuple[list[dict[str, Any]], Engine, Any]:
    """Play six episodes at once, and return OpenRLHF's samples, the engine and the tokenizer."""
    network, tokenizer = tiny_model(talks(40))
    engine, executor = Engine(LanguageModel(network, tokenizer, "tiny")), AgentExecutor()

    async def play(row: dict[str, str]) -> dict[str, Any]:
        params = SimpleNamespace(max_tokens=24, logprobs=1)
        return await executor.execute(row["input"], row["label"], params, 512, tokenizer, engine)

    async def play_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(play, openrlhf_rows(ENV_ID, range(100, 106), settings=SETTINGS)))

    return asyncio.run(play_all()), engine, tokenizer


if __name__ == "__main__":
    print([sample["reward"] for sample in main()[0]])
