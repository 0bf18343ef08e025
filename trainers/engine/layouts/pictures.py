"""Layouts for sequences with images: padded rows or one packed row, with the images of all sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vision.pictures import PictureInputs
from turngym.errors import ConfigError
from turngym.trainers.core.rows import Row
from turngym.trainers.engine.layouts import AUTO, ROWS, layout_of
from turngym.trainers.engine.layouts.base import Inputs, Layout, on
from turngym.trainers.engine.layouts.check import fits
from turngym.trainers.engine.layouts.packed import Packed
from turngym.trainers.engine.layouts.rows import Rows


class Pictures(Rows):
    """One row per sequence, for vision models.

    Args:
        takes: Image handling of the model.
        network: The model, which knows the positions of images; its weights are not used.
    """

    def __init__(self, takes: PictureInputs, network: Any) -> None:
        self.takes = takes
        self.network = network

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return left-padded ids with mask, positions and images."""
        plain = super().lay_out(sequences, device, attention)
        mask = torch.ones_like(plain.ids) if plain.mask is None else plain.mask
        self._neutralise(plain, sequences)
        more = self.takes.inputs([row.pictures for row in sequences], plain.ids)
        positions = self.takes.positions(self.network, plain.ids, mask, more)
        return plain._replace(mask=mask, positions=positions, more=more)

    def _neutralise(self, inputs: Inputs, sequences: Sequence[Row]) -> None:
        """Replace sampled placeholder tokens, which have no image, as the sampler does."""
        tokens = np.concatenate([row.reads.token for row in sequences])
        after = on(inputs.places[tokens >= 0] + 1, inputs.ids.device)
        line = inputs.ids.view(-1)
        line[after] = torch.where(line[after] == self.takes.placeholder, self.takes.neutral, line[after])


class PackedPictures(Packed):
    """One row without padding, for vision models.

    Three-part positions are preceded by text positions, which restart at 0 with each sequence.

    Args:
        takes: Image handling of the model.
        network: The model, which knows the positions of images; its weights are not used.
    """

    def __init__(self, takes: PictureInputs, network: Any) -> None:
        self._rows = Pictures(takes, network)

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return the ids of all sequences in one row, with positions and images."""
        plain = self.lay_out_ids(sequences, device)
        rows = self._rows.lay_out(sequences, device, attention)
        is_token = rows.mask.bool()

        def packed(matrix: Tensor) -> Tensor:
            return matrix[..., is_token][..., None, :]

        positions = packed(rows.positions)
        if positions.ndim == 3:
            positions = torch.cat([plain.positions[None], positions])
        more = {name: packed(one) if one.shape == is_token.shape else one for name, one in rows.more.items()}
        return plain._replace(ids=packed(rows.ids), positions=positions, more=more)


def layout_for(model: LanguageModel, name: str) -> Layout:
    """Return the layout with a name for a model, with images for vision models; ``auto`` falls back to ``rows``.

    Raises:
        ConfigError: There is no such layout, or vision models do not support it.
    """
    layout = layout_of(name)
    if name == AUTO:
        network = model.network
        is_free = model.pictures is None and network.config.get_text_config()._attn_implementation == "sdpa"
        name, layout = (name, layout) if is_free and fits(network, layout) else (ROWS.name, ROWS)
    if model.pictures is None:
        return layout
    seeing: dict[str, Callable[[PictureInputs, Any], Layout]] = {"rows": Pictures, "packed": PackedPictures}
    if name not in seeing:
        raise ConfigError(
            f"prompts with images do not support the layout {name}: pass --update.layout {' or '.join(seeing)}."
        )
    return seeing[name](model.pictures, model.network)
