"""Hidden states of distinct sequences at the positions that are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from turngym.trainers.core.rows import Row


class ReadStates(NamedTuple):
    """Hidden states of some sequences, and the reads of all of them, one sequence after another."""

    hidden: Float[Tensor, "state width"]
    state: Int[Tensor, "read"]
    """Which of the states each read uses; several reads may share one, and some states have none."""
    targets: Int[Tensor, "read"]
    """The sampled token after each read; -1 where only a critic reads."""
    sequence: Int[Tensor, "read"]
    column: Int[Tensor, "read"]
    """Number of the read in its sequence."""

    def scattered(self, flat: Float[Tensor, "read"]) -> Float[Tensor, "sequence column"]:
        """Return numbers of the reads as ``[sequence, column]``, with 0 in padding."""
        shape = (int(self.sequence.max()) + 1, int(self.column.max()) + 1)
        return flat.new_zeros(shape).index_put((self.sequence, self.column), flat)


def read_states(backbone: Any, sequences: Sequence[Row], device: torch.device) -> ReadStates:
    """Run a transformer without its head over sequences, each of which has a read.

    Args:
        backbone: The transformer; its output has ``last_hidden_state``.
        sequences: Distinct sequences.
        device: Where it is.
    """
    longest = max(len(row.ids) for row in sequences)
    ids = torch.tensor([(0,) * (longest - len(row.ids)) + row.ids for row in sequences], device=device)
    lengths = torch.tensor([len(row.ids) for row in sequences], device=device)
    mask = (torch.arange(longest, device=device)[None, :] >= longest - lengths[:, None]).long()
    output = backbone(
        input_ids=ids,
        attention_mask=mask if bool((lengths < longest).any()) else None,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        use_cache=False,
    )
    places = [(s, longest - len(row.ids) + read.position) for s, row in enumerate(sequences) for read in row.reads]
    sequence, position = torch.tensor(places, device=device).T
    kept, of_kept = position.unique(return_inverse=True)
    return ReadStates(
        output.last_hidden_state[:, kept].flatten(0, 1),
        sequence * len(kept) + of_kept,
        torch.tensor([read.target for row in sequences for read in row.reads], device=device),
        sequence,
        torch.tensor([column for row in sequences for column in range(len(row.reads))], device=device),
    )
