"""Hidden states of distinct sequences at the read positions."""

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
    """Hidden states of some sequences, and their concatenated reads."""

    hidden: Float[Tensor, "state width"]
    state: Int[Tensor, "read"]
    """Index of the state of each read; states may have several reads or none."""
    targets: Int[Tensor, "read"]
    """The sampled token after each read; -1 if only a critic reads."""
    sequence: Int[Tensor, "read"]
    column: Int[Tensor, "read"]
    """Index of the read in its sequence."""
    shape: tuple[int, int]
    """Number of sequences, and maximum number of reads per sequence."""

    def scattered(self, flat: Shaped[Tensor, "read"]) -> Shaped[Tensor, "sequence column"]:
        """Return numbers per read as ``[sequence, column]``, with 0 in padding."""
        return flat.new_zeros(self.shape).index_put((self.sequence, self.column), flat)


def _takes_any(backbone: Any) -> bool:
    """Return True if a transformer accepts further arguments; otherwise a tree uses its mask."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(backbone.forward).parameters.values())


def read_states(backbone: Any, sequences: Sequence[Row], device: torch.device, layout: Layout = ROWS) -> ReadStates:
    """Run a transformer without its head over sequences with reads.

    Args:
        backbone: The transformer; its output has ``last_hidden_state``.
        sequences: Distinct sequences.
        device: The device.
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
