"""The policy of the laboratory: one hidden layer over one-hot contexts, in the form of a causal language model.

A context is what the world shows, the number of tokens already written in this turn, and the last of them. Token ids
0 to ``symbols - 1`` are what the policy may write, later ones are observations, which it only reads.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from turngym.agents.models.loading import LanguageModel

WIDTH = 32


class ContextConfig(PretrainedConfig):
    """Sizes of the network.

    Args:
        symbols: Tokens that the policy may write.
        observations: Observations of the world.
        turn_tokens: Tokens of every turn.
        hidden_size: Width of the hidden layer.
    """

    model_type = "turngym-lab"

    def __init__(
        self, symbols: int = 4, observations: int = 2, turn_tokens: int = 1, hidden_size: int = WIDTH, **more: Any
    ) -> None:
        super().__init__(**more)
        self.symbols, self.observations, self.turn_tokens = symbols, observations, turn_tokens
        self.hidden_size = hidden_size
        self.vocab_size = symbols + observations

    @property
    def num_contexts(self) -> int:
        """Distinct contexts: an observation alone, or with a position and the token before it."""
        return self.observations * (1 + (self.turn_tokens - 1) * self.symbols)


class ContextPreTrained(PreTrainedModel):
    """What both classes share."""

    config_class = ContextConfig
    base_model_prefix = "contexts"

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the weights as they were made."""


class ContextLayer(ContextPreTrained):
    """The hidden layer."""

    def __init__(self, config: ContextConfig) -> None:
        super().__init__(config)
        self.table = nn.Embedding(config.num_contexts, config.hidden_size)

    def places(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        """Return the context before the token that follows each position."""
        symbols, turn_tokens = self.config.symbols, self.config.turn_tokens
        seen = (input_ids.amax(1, keepdim=True) - symbols).clamp_min(0)
        behind = position_ids.clamp_max(turn_tokens - 1)
        written = 1 + (behind - 1) * symbols + input_ids.clamp_max(symbols - 1)
        each = 1 + (turn_tokens - 1) * symbols
        found: Tensor = seen * each + torch.where(behind > 0, written, 0)
        return found

    def forward(self, input_ids: Tensor, position_ids: Tensor | None = None, **ignored: Any) -> BaseModelOutput:
        """Return the hidden states."""
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        hidden = torch.tanh(self.table(self.places(input_ids, position_ids)))
        return BaseModelOutput(last_hidden_state=hidden)


class ContextPolicy(ContextPreTrained):
    """The hidden layer with a head over the symbols that the policy may write."""

    def __init__(self, config: ContextConfig) -> None:
        super().__init__(config)
        self.contexts = ContextLayer(config)
        self.head = nn.Linear(config.hidden_size, config.symbols)

    def get_output_embeddings(self) -> nn.Module:
        """Return the head."""
        return self.head

    def forward(self, input_ids: Tensor, **more: Any) -> CausalLMOutput:
        """Return the logits."""
        return CausalLMOutput(logits=self.head(self.contexts(input_ids, **more).last_hidden_state))

    @torch.no_grad()
    def log_probabilities(self) -> NDArray[np.float64]:
        """Return the log-probability of each symbol in each context, ``[context, symbol]``."""
        logits = self.head(torch.tanh(self.contexts.table.weight))
        return cast("NDArray[np.float64]", torch.log_softmax(logits.float(), -1).double().numpy())


def lab_model(symbols: int, observations: int, turn_tokens: int, copying: float, seed: int) -> LanguageModel:
    """Return a policy whose first token of a turn is uniform; it repeats the token before with a given probability.

    Args:
        symbols: Tokens that it may write.
        observations: Observations of the world.
        turn_tokens: Tokens of every turn.
        copying: Probability that a later token of a turn repeats the one before; ``1 / symbols`` for uniform ones.
        seed: Seed of the hidden layer.
    """
    network = ContextPolicy(ContextConfig(symbols, observations, turn_tokens, max(WIDTH, 2 * symbols)))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        table = network.contexts.table.weight
        nn.init.normal_(table, generator=generator)
        nn.init.zeros_(network.head.weight)
        nn.init.zeros_(network.head.bias)
        if turn_tokens > 1:
            _teach_copying(network, copying)
    return LanguageModel(network, cast("Any", None), "lab")


def _teach_copying(network: ContextPolicy, copying: float) -> None:
    """Set one hidden unit for each symbol, which the head reads alone, to whether the token before is that symbol."""
    config = network.config
    size, symbols = 1 + (config.turn_tokens - 1) * config.symbols, config.symbols
    before = torch.full((size,), -1)
    before[1:] = torch.arange(size - 1) % symbols
    is_it = before[:, None] == torch.arange(symbols)
    units = torch.where(is_it, 2.0, 0.0).repeat(config.observations, 1)
    network.contexts.table.weight[:, :symbols] = units
    odds = copying * (symbols - 1) / (1 - copying)
    network.head.weight[:, :symbols] = torch.eye(symbols) * float(np.log(odds)) / float(np.tanh(2.0))
