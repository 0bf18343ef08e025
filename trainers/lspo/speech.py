"""Models of speech: log-probabilities and embeddings of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from turngym.agents.models.action_probabilities import sequence_logprobs
from turngym.agents.models.loading import LanguageModel
from turngym.lazy import Tensor, torch
from turngym.trainers.lspo.latent import Vectors

Situation = tuple[str, tuple[str, ...]]
"""Text of an information set, and sentences that may be said there."""


class SpeechModel(Protocol):
    """Policy over sentences that can be trained."""

    def logprobs(self, situations: Sequence[Situation]) -> list[Tensor]:
        """Return ``[sentences]`` log-probabilities for each situation, which can be differentiated."""
        ...

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return ``[texts, dimensions]`` embeddings."""
        ...

    def parameters(self) -> Iterable[Tensor]:
        """Return the weights to train."""
        ...


@dataclass(frozen=True)
class LanguageSpeech:
    """Speech of a language model, which reads the text of the information set as a user's message.

    Args:
        model: The model.
        layer: Hidden states that embed a sentence: 0 for the token embeddings, -1 for those of the last layer.
    """

    model: LanguageModel
    layer: int = 0

    def logprobs(self, situations: Sequence[Situation]) -> list[Tensor]:
        """Return ``[sentences]`` sums of token log-probabilities, end token included."""
        tokenizer, rows = self.model.tokenizer, []
        for text, sentences in situations:
            messages = [{"role": "user", "content": text}]
            shown = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            prompt = tuple(tokenizer.encode(shown, add_special_tokens=False))
            rows += [(prompt, (*self._ids(sentence), int(tokenizer.eos_token_id))) for sentence in sentences]
        found = torch.stack(sequence_logprobs(self.model, rows))
        return list(found.split([len(sentences) for _, sentences in situations]))

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the mean hidden state of each text, less the mean of all texts, as unit vectors."""
        found = []
        with torch.no_grad():
            for text in texts:
                ids = torch.tensor([self._ids(text)], device=self.model.network.device)
                output = self.model.network(input_ids=ids, output_hidden_states=True, use_cache=False)
                found.append(output.hidden_states[self.layer][0].mean(0).double().cpu().numpy())
        centred: Vectors = np.stack(found) - np.mean(found, axis=0)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        return centred / np.where(lengths > 0, lengths, 1.0)

    def parameters(self) -> Iterable[Tensor]:
        """Return the weights of the network."""
        return self.model.network.parameters()

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.model.tokenizer.encode(text, add_special_tokens=False))
