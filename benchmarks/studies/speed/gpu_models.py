"""Models with random weights, conversations of random tokens, and comparisons, for ``gpu.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import LanguageModel, set_format
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn


@dataclass(frozen=True)
class Shape:
    """Size of a Qwen3 model."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    words: int

    def operations(self, length: int, read: float) -> float:
        """Return the floating-point operations of one token, forward and backward.

        Args:
            length: Tokens of its sequence.
            read: Share of the positions whose logits are computed.
        """
        attention = self.hidden * self.head * (2 * self.heads + 2 * self.kv_heads)
        weights = self.layers * (attention + 3 * self.hidden * self.intermediate) + read * self.words * self.hidden
        return 6.0 * weights + 6.0 * self.layers * self.heads * self.head * length


SHAPES = {
    "tiny": Shape(64, 128, 2, 4, 2, 16, 512),
    "small": Shape(256, 512, 4, 4, 2, 64, 20_000),
    "0.6B": Shape(1024, 3072, 28, 16, 8, 128, 151_936),
    "4B": Shape(2560, 9728, 36, 32, 8, 128, 151_936),
}


def build_network(shape: Shape, dtype: torch.dtype = torch.float32, device: str = "cpu") -> PreTrainedModel:
    """Return a network with the weights of seed 0."""
    config = Qwen3Config(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        vocab_size=shape.words,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    with torch.device(device):
        network: PreTrainedModel = Qwen3ForCausalLM(config).eval()
    set_format(network, dtype)
    return network


def language_model(network: PreTrainedModel) -> LanguageModel:
    """Return a network with a tokenizer that no piece uses."""
    return LanguageModel(network, build_tokenizer(["a door"], 300), "random")


def conversations(count: int, length: int, words: int, turns: int = 4) -> list[Trajectory]:
    """Return conversations of random tokens, of three lengths; groups of four share the first prompt.

    Args:
        count: Number of conversations.
        length: Tokens of the shortest, apart from the first prompt, half of them sampled.
        words: Size of the vocabulary.
        turns: Turns of each.
    """
    rng, step, found = np.random.default_rng(0), length // turns, []
    for number in range(count):
        first = np.random.default_rng((1, number // 4)).integers(1, words, step // 2).tolist()
        ids = first + rng.integers(1, words, length + number % 3 * (step // 4) - step // 2).tolist()
        ends = [*((k + 1) * step for k in range(turns - 1)), len(ids)]
        made = [_turn(ids, k * step + step // 2, end, float(number % 2)) for k, end in enumerate(ends)]
        found.append(Trajectory(EpisodeSpec(number, 0, number // 4), turns=made, terminated=True))
    return found


def _turn(ids: Sequence[int], start: int, end: int, reward: float) -> Turn:
    logprobs = (-9.0,) * (end - start)
    prompt, completion = tuple(ids[:start]), tuple(ids[start:end])
    return Turn("o", "o", "a", reward=reward, prompt_ids=prompt, completion_ids=completion, logprobs=logprobs)


def relative_gap(found: Tensor, wanted: Tensor) -> float:
    """Return the norm of a difference over that of the wanted numbers; NaN if any found number is not finite.

    >>> relative_gap(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5]))  # doctest: +ELLIPSIS
    0.0924...
    """
    one, other = (each.detach().double().cpu() for each in (found, wanted))
    if not bool(torch.isfinite(one).all()):
        return float("nan")
    return float((one - other).norm() / other.norm().clamp(min=1e-30))
