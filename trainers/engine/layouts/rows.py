"""Sequences as the rows of a matrix, padded on the left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from turngym.trainers.core.rows import Row, by_padded_length
from turngym.trainers.engine.layouts.base import Inputs, on, read_places


class Rows:
    """One row per sequence; supported by every model."""

    name = "rows"
    shares_rows = False
    needs_mask = False

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return groups of sequences of similar lengths, by their padded tokens."""
        return by_padded_length(sequences, chosen, max_tokens)

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return left-padded ids, and a mask unless all lengths are equal."""
        lengths = np.array([len(row.ids) for row in sequences], dtype=np.int64)
        longest = int(lengths.max())
        padding = longest - lengths
        is_token = np.arange(longest) >= padding[:, None]
        ids = np.zeros((len(sequences), longest), dtype=np.int64)
        ids[is_token] = np.concatenate([row.ids for row in sequences])
        positions = np.maximum(np.arange(longest) - padding[:, None], 0)
        places = read_places(sequences, np.arange(len(sequences)) * longest + padding)
        mask = on(is_token.astype(np.int64), device) if padding.any() else None
        return Inputs(on(ids, device), mask, on(positions, device), places)
