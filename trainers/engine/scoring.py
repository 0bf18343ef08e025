"""Log-probabilities, entropies and values of distinct sequences, computed only at the positions that are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.trainers.core.rows import Row
from turngym.trainers.engine.sharing import copy_sharing_frozen


class Scores(NamedTuple):
    """Outputs at the read positions, ``[sequence, column]``; 0 in padding."""

    logprobs: Float[Tensor, "sequence column"]
    entropy: Float[Tensor, "sequence column"] | None


class _Layout(NamedTuple):
    """Left-padded ids of some sequences and where they are read."""

    ids: Tensor
    mask: Tensor | None
    positions: Tensor
    reads: Tensor
    targets: Tensor


def _lay_out(sequences: Sequence[Row], device: torch.device) -> _Layout:
    longest = max(len(row.ids) for row in sequences)
    columns = max(len(row.reads) for row in sequences)
    ids = torch.tensor([(0,) * (longest - len(row.ids)) + row.ids for row in sequences], device=device)
    lengths = torch.tensor([len(row.ids) for row in sequences], device=device)
    mask = (torch.arange(longest, device=device)[None, :] >= longest - lengths[:, None]).long()
    reads = [[longest - len(r.ids) + read.position for read in r.reads] for r in sequences]
    targets = [[read.target for read in r.reads] for r in sequences]
    return _Layout(
        ids,
        mask if bool((lengths < longest).any()) else None,
        (mask.cumsum(-1) - 1).clamp(min=0),
        torch.tensor([r + [-1] * (columns - len(r)) for r in reads], device=device),
        torch.tensor([t + [-1] * (columns - len(t)) for t in targets], device=device),
    )


def score(network: PreTrainedModel, sequences: Sequence[Row], temperature: float, with_entropy: bool = False) -> Scores:
    """Return log-probabilities of the sampled tokens under the distribution that is sampled from.

    Args:
        network: A causal language model.
        sequences: Distinct sequences.
        temperature: The sampler's temperature; the logits are divided by it.
        with_entropy: Whether to return the entropy of each next-token distribution too, in nats.
    """
    layout = _lay_out(sequences, network.device)
    kept = torch.unique(layout.reads[layout.reads >= 0])
    output: Any = network(
        input_ids=layout.ids,
        attention_mask=layout.mask,
        position_ids=layout.positions,
        logits_to_keep=kept,
        use_cache=False,
    )
    column = torch.searchsorted(kept, layout.reads.clamp(min=0))
    logits = output.logits.gather(1, column[..., None].expand(-1, -1, output.logits.shape[-1]))
    distribution = torch.log_softmax(_as_float(logits) / (temperature or 1.0), dim=-1)
    scored = layout.targets >= 0
    logprobs = distribution.gather(-1, layout.targets.clamp(min=0)[..., None]).squeeze(-1)
    entropy = -(distribution.exp() * distribution).sum(-1) * scored if with_entropy else None
    return Scores(logprobs * scored, entropy)


def _as_float(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


class Critic(nn.Module):
    """A value network: the policy's transformer, copied, with one linear output that starts at 0.

    Weights that are frozen in the policy are shared with it: with low-rank adapters the critic has its own adapters on
    the same trunk. The output is at least in single precision, since an optimiser on 16-bit weights loses small
    updates.

    Args:
        network: The policy whose transformer is copied.
    """

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.backbone: Any = copy_sharing_frozen(network.base_model)
        width = int(network.config.get_text_config().hidden_size)
        precision = torch.promote_types(network.dtype, torch.float32)
        self.head = nn.Linear(width, 1, dtype=precision, device=network.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, sequences: Sequence[Row]) -> Float[Tensor, "sequence column"]:
        """Return the value at each read position: an estimate from everything before the token it predicts."""
        layout = _lay_out(sequences, self.head.weight.device)
        hidden = self.backbone(
            input_ids=layout.ids, attention_mask=layout.mask, position_ids=layout.positions, use_cache=False
        ).last_hidden_state
        index = layout.reads.clamp(min=0)[..., None].expand(-1, -1, hidden.shape[-1])
        values: Tensor = self.head(hidden.gather(1, index).to(self.head.weight.dtype)).squeeze(-1)
        return values * (layout.reads >= 0)
