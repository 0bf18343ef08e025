"""Sequences concatenated in a single row, each attending only to itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from turngym.trainers.core.rows import Row, token_cost
from turngym.trainers.engine.layouts.base import Inputs, on, read_places, require_no_pictures
from turngym.trainers.engine.layouts.segments import ARGUMENT, borders_of

_NO_MASK = (1, 1, 1, 1)
"""A mask with four dimensions is used by transformers unchanged, instead of building one over all pairs of tokens."""


class Packed:
    """One row without padding.

    Positions restart at 0 with each sequence. transformers interprets this as a sequence boundary, but only without an
    attention mask and cache: with a mask of ones, every sequence would attend to earlier ones.
    """

    name = "packed"
    shares_rows = True
    needs_mask = False

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return sequences of similar lengths together, by the cost of their tokens."""
        chunks: list[list[int]] = []
        tokens = 0
        for s in sorted(chosen, key=lambda s: (len(sequences[s].ids), s)):
            length = len(sequences[s].ids)
            tokens += length
            if not chunks or token_cost(tokens, length) > max_tokens:
                chunks.append([])
                tokens = length
            chunks[-1].append(s)
        return chunks

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return the ids of all sequences in one row."""
        require_no_pictures(sequences, self.name)
        inputs = self.lay_out_ids(sequences, device)
        if attention == "flash_attention_2":
            return inputs._replace(more=_flash_arguments(sequences, device))
        if attention != "sdpa":
            return inputs
        return inputs._replace(
            mask=None if device.type == "cpu" else torch.zeros(_NO_MASK, dtype=torch.bool, device=device),
            more={ARGUMENT: borders_of([len(row.ids) for row in sequences], device)},
        )

    def lay_out_ids(self, sequences: Sequence[Row], device: torch.device) -> Inputs:
        """Return the ids of all sequences in one row, without further inputs."""
        lengths = np.array([len(row.ids) for row in sequences], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        ids = np.concatenate([row.ids for row in sequences])
        positions = np.arange(len(ids)) - np.repeat(starts, lengths)
        places = read_places(sequences, starts)
        return Inputs(on(ids[None], device), None, on(positions[None], device), places)


def _flash_arguments(sequences: Sequence[Row], device: torch.device) -> dict[str, Any]:
    """Return the boundaries for transformers, which otherwise computes them from positions on the device."""
    borders = borders_of([len(row.ids) for row in sequences], device)
    starts, longest = borders.starts, borders.longest
    return {"cu_seq_lens_q": starts, "cu_seq_lens_k": starts, "max_length_q": longest, "max_length_k": longest}
