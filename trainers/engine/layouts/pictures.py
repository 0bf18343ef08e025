"""Sequences with pictures: rows of a matrix, with the pictures of all of them beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vision.pictures import PictureInputs
from turngym.trainers.core.rows import Row, by_padded_length
from turngym.trainers.engine.layouts import layout_of
from turngym.trainers.engine.layouts.base import Inputs, Layout, on
from turngym.trainers.engine.layouts.rows import Rows


class Pictures:
    """One row of the batch for each sequence, for models that see.

    Args:
        takes: How the model takes pictures.
        network: The model, which knows the positions of pictures; its weights are not used.
    """

    name = "pictures"
    shares_rows = False
    needs_mask = False

    def __init__(self, takes: PictureInputs, network: Any) -> None:
        self.takes = takes
        self.network = network

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return sequences of similar lengths together, by their padded tokens."""
        return by_padded_length(sequences, chosen, max_tokens)

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return left-padded ids with their mask, positions and pictures."""
        plain = Rows().lay_out(sequences, device, attention)
        mask = torch.ones_like(plain.ids) if plain.mask is None else plain.mask
        self._neutralise(plain, sequences)
        more = self.takes.inputs([row.pictures for row in sequences], plain.ids)
        positions = self.takes.positions(self.network, plain.ids, mask, more)
        return plain._replace(mask=mask, positions=positions, more=more)

    def _neutralise(self, inputs: Inputs, sequences: Sequence[Row]) -> None:
        """Replace placeholders that were sampled, as the sampler does: no picture belongs to them."""
        tokens = on(np.concatenate([row.reads.token for row in sequences]), inputs.places.device)
        after = inputs.places[tokens >= 0] + 1
        line = inputs.ids.view(-1)
        line[after] = torch.where(line[after] == self.takes.placeholder, self.takes.neutral, line[after])


def layout_for(model: LanguageModel, name: str) -> Layout:
    """Return the layout of that name; for a model that sees, always that of this module.

    Raises:
        ConfigError: There is no such layout.
    """
    layout = layout_of(name)
    return layout if model.pictures is None else Pictures(model.pictures, model.network)
