"""Hidden states of distinct sequences at the positions that are read."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from turngym.trainers.core.rows import Row
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.base import on


class ReadStates(NamedTuple):
    """Hidden states of some sequences, and the reads of all of them, one sequence after another."""

    hidden: Float[Tensor, "state width"]
    state: Int[Tensor, "read"]
    """Index of the state used by each read; several reads may share one, and some states have none."""
    targets: Int[Tensor, "read"]
    """The sampled token after each read; -1 where only a critic reads."""
    sequence: Int[Tensor, "read"]
    column: Int[Tensor, "read"]
    """Number of the read in its sequence."""
    shape: tuple[int, int]
    """Sequences, and reads of the one with most of them."""

    def scattered(self, flat: Shaped[Tensor, "read"]) -> Shaped[Tensor, "sequence column"]:
        """Return numbers of the reads as ``[sequence, column]``, with 0 in padding."""
        return flat.new_zeros(self.shape).index_put((self.sequence, self.column), flat)


def _takes_any(backbone: Any) -> bool:
    """Return whether a transformer takes further arguments; without them a tree has its mask."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(backbone.forward).parameters.values())


def read_states(backbone: Any, sequences: Sequence[Row], device: torch.device, layout: Layout = ROWS) -> ReadStates:
    """Run a transformer without its head over sequences, each of which has a read.

    Args:
        backbone: The transformer; its output has ``last_hidden_state``.
        sequences: Distinct sequences.
        device: Location.
        layout: Layout.
    """
    inputs = layout.lay_out(sequences, device, backbone.config.get_text_config()._attn_implementation)
    output = backbone(
        input_ids=inputs.ids,
        attention_mask=inputs.mask,
        position_ids=inputs.positions,
        use_cache=False,
        **(inputs.more if _takes_any(backbone) else {}),
    )
    line, position = np.divmod(inputs.places, inputs.ids.shape[1])
    kept, of_kept = np.unique(position, return_inverse=True)
    counts = [len(row.reads) for row in sequences]
    columns = np.concatenate([np.arange(count) for count in counts])
    return ReadStates(
        output.last_hidden_state[:, on(kept, device)].flatten(0, 1),
        on(line * len(kept) + of_kept, device),
        on(np.concatenate([row.reads.target for row in sequences]), device),
        on(np.repeat(np.arange(len(sequences)), counts), device),
        on(columns, device),
        (len(sequences), max(counts)),
    )
