"""Divergences from a teacher over the vocabulary, computed in chunks.

The teacher's last hidden states at the sampled tokens are computed once per batch, as a compact form of its
distributions. Logits of both networks are computed in chunks with the loss, and again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from turngym.lazy import no_grad
from turngym.trainers import functional as F
from turngym.trainers.core.algorithm import Divergence
from turngym.trainers.core.rows import Row
from turngym.trainers.engine.chunked_scores import BUDGET, GPU_BUDGET, chunk_size, flat_scores
from turngym.trainers.engine.head import Head, head_of
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.read_states import read_states
from turngym.trainers.engine.ranks.sharding import inside


class TeacherStates(NamedTuple):
    """A teacher's distributions at the sampled tokens of a batch.

    Args:
        hidden: Last hidden state before each sampled token; 0 without a distribution.
        known: True at tokens with a distribution.
        head: The teacher's head, which maps states to logits.
    """

    hidden: Float[Tensor, "token width"]
    known: Bool[Tensor, "token"]
    head: Head

    @no_grad
    def logprobs(self, ids: Int[Tensor, "token"], temperature: float) -> Float[Tensor, "token"]:
        """Return the log-probability of each sampled token in double precision, nan without a distribution."""
        device = self.head.weight.device
        places = torch.arange(len(ids), device=device)
        found = flat_scores(self.head, self.hidden.to(device), places, ids.to(device), temperature).logprobs
        return torch.where(self.known, found.double().cpu(), float("nan"))

    @no_grad
    def squares(self, temperature: float) -> Float[Tensor, "token"]:
        """Return the sum of the squared probabilities of each distribution in double precision."""
        return self._in_chunks(lambda states, _: self._logits(states, temperature).softmax(-1).square().sum(-1))

    @no_grad
    def divergence(self, other: TeacherStates, form: Divergence, temperature: float) -> Float[Tensor, "token"]:
        """Return the divergence of each distribution, taken as the policy's, from another one, in double precision."""

        def chunk(own: Tensor, theirs: Tensor) -> Tensor:
            return _compared(self._logits(own, temperature), other._logits(theirs, temperature), form)

        return self._in_chunks(chunk, other.hidden)

    def _logits(self, states: Tensor, temperature: float) -> Tensor:
        return _wide(self.head.logits(states.to(self.head.weight.device))) / (temperature or 1.0)

    def _in_chunks(self, values: Callable[[Tensor, Tensor], Tensor], others: Tensor | None = None) -> Tensor:
        """Return a number for each state, computed in chunks."""
        budget = BUDGET if self.head.weight.device.type == "cpu" else GPU_BUDGET
        size = chunk_size(self.head.words, budget // (1 if others is None else 4))
        pairs = zip(self.hidden.split(size), (self.hidden if others is None else others).split(size), strict=True)
        parts = [values(*pair).double() for pair in pairs]
        return torch.cat(parts).cpu() if parts else torch.zeros(0, dtype=torch.float64)


class Compared(NamedTuple):
    """The reference of a divergence in one forward pass.

    Args:
        teacher: The teacher's distributions.
        form: The divergence.
        token: Sampled token at each position, -1 for none.
        sequence_of: Index of the sequence of each row.
    """

    teacher: TeacherStates
    form: Divergence
    token: Int[Tensor, "row column"]
    sequence_of: Int[Tensor, "row"]


def head_as_it_is(network: Any) -> Head:
    """Return a copy of a network's head that later updates do not change."""
    return inside(network, _kept_head)


@torch.no_grad()
def _kept_head(network: Any) -> Head:
    head = head_of(network)
    bias = None if head.bias is None else head.bias.clone()
    low = tuple((a.clone(), b.clone(), factor) for a, b, factor in head.adapters)
    return replace(head, weight=head.weight.clone(), bias=bias, adapters=low)


def hidden_states(network: Any, sequences: Sequence[Row], layout: Layout = ROWS) -> Tensor:
    """Return the last hidden state at each read position, ``[sequence, column, width]``."""
    return inside(network, _hidden_states, sequences, layout)


def _hidden_states(network: Any, sequences: Sequence[Row], layout: Layout) -> Tensor:
    states = read_states(network.base_model, sequences, network.device, layout)
    found: Tensor = states.hidden[states.scattered(states.state)]
    return found * states.scattered(torch.ones_like(states.state))[..., None]


def divergences(
    head: Head,
    hidden: Float[Tensor, "state width"],
    state: Int[Tensor, "sequence column"],
    compared: Compared,
    temperature: float,
) -> Float[Tensor, "row column"]:
    """Return the divergence at each sampled token with a teacher's distribution, 0 elsewhere.

    Args:
        head: The policy's head.
        hidden: The policy's hidden states; carry gradients.
        state: Index of the state at each position of a sequence.
        compared: Teacher, divergence and positions.
        temperature: Temperature of both distributions.
    """
    token, teacher = compared.token, compared.teacher
    is_known = (token >= 0) & teacher.known[token.clamp(min=0)]
    rows, columns = torch.nonzero(is_known, as_tuple=True)
    device = hidden.device
    mine = state[compared.sequence_of[rows].to(device), columns.to(device)]
    theirs = teacher.hidden[token[rows, columns]].to(device)
    size = chunk_size(max(head.words, teacher.head.words), (BUDGET if device.type == "cpu" else GPU_BUDGET) // 4)

    def chunk(own: Tensor, other: Tensor) -> Tensor:
        logits, others = (_wide(each) / (temperature or 1.0) for each in (head.logits(own), teacher.head.logits(other)))
        return _compared(logits, others, compared.form)

    parts = [
        chunk(hidden[mine[start : start + size]], theirs[start : start + size])
        if len(mine) <= size
        else checkpoint(chunk, hidden[mine[start : start + size]], theirs[start : start + size], use_reentrant=False)
        for start in range(0, len(mine), size)
    ]
    if not parts:
        return torch.zeros(token.shape, device=device) * hidden.sum()
    flat = torch.cat(parts)
    return flat.new_zeros(token.shape).index_put((rows.to(device), columns.to(device)), flat)


def _compared(logits: Tensor, others: Tensor, form: Divergence) -> Tensor:
    words = min(logits.shape[-1], others.shape[-1])  # embeddings may be padded beyond the vocabulary
    return F.vocabulary_divergence(logits[:, :words], others[:, :words], form)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()
