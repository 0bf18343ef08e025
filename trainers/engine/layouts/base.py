"""Layouts: network inputs for sequences, and their distribution over forward passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from turngym.errors import ConfigError
from turngym.trainers.core.rows import Integers, Row


class Inputs(NamedTuple):
    """The inputs of a transformer, and the read positions of its output.

    Args:
        ids: Token ids.
        mask: The attention mask: None, 2-D over padding, 4-D over pairs of tokens, or a block mask.
        positions: Position of each token in its sequence.
        places: ``[read]``, index of each read's output in the flattened rows; on the host.
        more: Further arguments of the forward pass, such as images.
    """

    ids: Int[Tensor, "row token"]
    mask: Any
    positions: Int[Tensor, "row token"]
    places: Integers
    more: Mapping[str, Any] = MappingProxyType({})


class Layout(Protocol):
    """Layout of sequences in forward passes."""

    @property
    def name(self) -> str:
        """The name in settings."""
        ...

    @property
    def shares_rows(self) -> bool:
        """True if several sequences share a row, so only attention may connect tokens."""
        ...

    @property
    def needs_mask(self) -> bool:
        """True if it needs attention with a mask over pairs of tokens."""
        ...

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return the sequences of each forward pass.

        Args:
            sequences: All sequences of a batch.
            chosen: Indices of the sequences to distribute.
            max_tokens: Tokens per forward pass; a longer sequence has a separate one.
        """
        ...

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return the inputs of a network for some sequences.

        Args:
            sequences: Distinct sequences.
            device: Device of the network.
            attention: Name of the network's attention in transformers.
        """
        ...


def on(array: Integers, device: torch.device) -> Tensor:
    """Return an array as a tensor on a device."""
    return torch.from_numpy(array).to(device)


def require_no_pictures(sequences: Sequence[Row], layout: str) -> None:
    """Raise if a sequence has images, because equal placeholder tokens may represent different images.

    Raises:
        ConfigError: A sequence has images.
    """
    if any(row.pictures for row in sequences):
        raise ConfigError(f"prompts with images do not support the layout {layout}: pass --update.layout rows.")


def read_places(sequences: Sequence[Row], starts: Integers) -> Integers:
    """Return the index of every read, given the index of each sequence's first token."""
    counts = [len(row.reads) for row in sequences]
    return np.concatenate([row.reads.position for row in sequences]) + np.repeat(starts, counts)
