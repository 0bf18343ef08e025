"""Log-probabilities, entropies and values of distinct sequences, computed only at the read positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.trainers.core.rows import Row
from turngym.trainers.engine.chunked_scores import flat_scores
from turngym.trainers.engine.divergences import Compared, divergences
from turngym.trainers.engine.head import head_of
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.read_states import read_states
from turngym.trainers.engine.ranks.sharding import inside
from turngym.trainers.engine.sharing import copy_sharing_frozen


class Scores(NamedTuple):
    """Outputs at the read positions, ``[sequence, column]``; 0 in padding."""

    logprobs: Float[Tensor, "sequence column"]
    entropy: Float[Tensor, "sequence column"] | None
    divergence: Float[Tensor, "row column"] | None = None
    """Divergence from a teacher per row, because the teacher's lesson may differ between rows of a sequence."""


def score(
    network: PreTrainedModel,
    sequences: Sequence[Row],
    temperature: float,
    with_entropy: bool = False,
    layout: Layout = ROWS,
    compared: Compared | None = None,
) -> Scores:
    """Return log-probabilities of the sampled tokens under the sampling distribution.

    Args:
        network: A causal language model.
        sequences: Distinct sequences.
        temperature: The sampler's temperature; the logits are divided by it.
        with_entropy: Also return the entropy of each next-token distribution, in nats.
        layout: Layout of the sequences.
        compared: Teacher for the divergence.

    Raises:
        ModelError: The network's logits are not its head times its last hidden states.
    """
    return inside(network, _score, sequences, temperature, with_entropy, layout, compared)


def _score(
    network: PreTrainedModel,
    sequences: Sequence[Row],
    temperature: float,
    with_entropy: bool,
    layout: Layout,
    compared: Compared | None,
) -> Scores:
    head = head_of(network)
    states = read_states(network.base_model, sequences, network.device, layout)
    flat = flat_scores(head, states.hidden, states.state, states.targets, temperature, with_entropy)
    entropy = None if flat.entropy is None else states.scattered(flat.entropy)
    divergence = None
    if compared is not None:
        divergence = divergences(head, states.hidden, states.scattered(states.state), compared, temperature)
    return Scores(states.scattered(flat.logprobs), entropy, divergence)


class Critic(nn.Module):
    """Value network: a copy of the policy's transformer with a linear output initialised to 0.

    Frozen weights are shared with the policy: with low-rank adapters, the critic has its own adapters on the same base.
    The output layer is float32 or float64, because small updates of 16-bit weights are lost.

    Args:
        network: The policy's network.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.backbone: Any = copy_sharing_frozen(network.base_model)
        width = int(network.config.get_text_config().hidden_size)
        precision = torch.promote_types(network.dtype, torch.float32)
        self.head = nn.Linear(width, 1, dtype=precision, device=network.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, sequences: Sequence[Row], layout: Layout = ROWS) -> Float[Tensor, "sequence column"]:
        """Return the value at each read position, estimated from all tokens up to it."""
        states = read_states(self.backbone, sequences, self.head.weight.device, layout)
        hidden = states.hidden[states.scattered(states.state)]
        values: Tensor = self.head(hidden.to(self.head.weight.dtype)).squeeze(-1)
        return values * states.scattered(torch.ones_like(states.state))
