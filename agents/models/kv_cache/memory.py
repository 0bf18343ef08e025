"""Keys and values of many sequences in preallocated memory, in the form of a transformers cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer

from turngym.agents.models.flash import has_flash_kernels
from turngym.agents.models.forward_pass import forward_arguments

Rows: TypeAlias = "slice | Tensor"


class Place:
    """Cache positions written and read by the next forward pass.

    Args:
        rows: The rows of the memory that are in the batch: a slice is read in place, an index is copied.
        columns: ``[row, token]``, the column that each new token is written to.
        width: Columns that are read.
    """

    def __init__(self, rows: Rows, columns: Tensor, width: int) -> None:
        self.rows = rows
        self.columns = columns
        self.width = width
        first = torch.arange(columns.shape[0], device=columns.device) if isinstance(rows, slice) else rows
        self.index = first[:, None]

    def write(self, memory: Tensor, new: Tensor) -> Tensor:
        """Write new keys or values, and return all that the pass reads."""
        rows = memory[self.rows] if isinstance(self.rows, slice) else memory
        rows.transpose(1, 2)[self.index, self.columns] = new.transpose(1, 2)
        read = rows[:, :, : self.width]
        return read if isinstance(self.rows, slice) else read.index_select(0, self.rows)


class PlaceLike(Protocol):
    """Where a forward pass writes and reads."""

    def write(self, memory: Tensor, new: Tensor) -> Tensor:
        """Write new keys or values, and return all that the pass reads."""


class MemoryLayer(CacheLayerMixin):
    """One layer's keys and values, ``[row, head, column, dimension]``, the last column for padding.

    Args:
        is_packed: Whether the heads of a token are neighbours in memory, instead of the tokens of a head.
    """

    is_sliding = False

    def __init__(self, is_packed: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_packed = is_packed
        self.place: PlaceLike | None = None
        self.shape = (0, 0)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate memory like the first keys and values."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys = _zeros(key_states, *self.shape, self.is_packed)
        self.values = _zeros(value_states, *self.shape, self.is_packed)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write new keys and values, and return all that the pass reads."""
        assert self.place is not None
        if self.keys is None or self.values is None:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None and self.values is not None
        return self.place.write(self.keys, key_states), self.place.write(self.values, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the length and the offset of what is read."""
        return (self.place.width if isinstance(self.place, Place) else 0), 0

    def get_seq_length(self) -> int:
        """Return the longest sequence before the pass; positions and masks are always given."""
        return 0

    def get_max_length(self) -> int:
        """Return the number of columns."""
        return self.shape[1]

    get_max_cache_shape = get_max_length
    """The name of that in transformers before 5.11."""


def _zeros(like: Tensor, rows: int, columns: int, is_packed: bool) -> Tensor:
    """Allocate one layer's memory; zeros, since what is masked must still be finite."""
    heads, dimension = like.shape[1], like.shape[3]
    if is_packed:
        return like.new_zeros(rows, columns + 1, heads, dimension).transpose(1, 2)
    return like.new_zeros(rows, heads, columns + 1, dimension)


class Memory(Cache):
    """Keys and values of ``rows`` sequences of up to ``columns`` tokens.

    Args:
        num_layers: Layers of the network.
        is_packed: Whether the heads of a token are neighbours in memory, see :class:`MemoryLayer`.
    """

    def __init__(self, num_layers: int, is_packed: bool = False) -> None:
        super().__init__(layers=[MemoryLayer(is_packed) for _ in range(num_layers)])
        self.rows = self.columns = 0
        self.version = 0

    def _layers(self) -> Sequence[Any]:
        return self.layers

    def set_place(self, place: PlaceLike) -> None:
        """Say where the next forward pass writes and reads."""
        for layer in self._layers():
            layer.place = place

    def release(self) -> None:
        """Give all memory back."""
        self.rows = self.columns = 0
        self.version += 1
        for layer in self._layers():
            layer.keys = layer.values = layer.place = None
            layer.is_initialized = False

    def resize(self, rows: int, columns: int, keep: Sequence[int], width: int) -> None:
        """Change the size, one layer at a time.

        Args:
            rows: New number of rows.
            columns: New number of columns.
            keep: Rows that are kept; they become the first ones, in this order.
            width: Columns that hold something in one of these.
        """
        for layer in self._layers():
            layer.shape = (rows, columns)
            if layer.keys is not None:
                layer.keys = _resized(layer.keys, rows, columns, keep, width, layer.is_packed)
                layer.values = _resized(layer.values, rows, columns, keep, width, layer.is_packed)
        self.rows, self.columns = rows, columns
        self.version += 1

    def copy(self, source: int, targets: Sequence[int], width: int) -> None:
        """Copy the first columns of a row to other rows."""
        for layer in self._layers():
            for memory in (layer.keys, layer.values):
                if memory is not None:
                    memory[torch.tensor(targets, device=memory.device), :, :width] = memory[source, :, :width]

    def swap(self, one: int, other: int, width: int) -> None:
        """Exchange the first columns of two rows."""
        for layer in self._layers():
            for memory in (layer.keys, layer.values):
                if memory is not None:
                    held = memory[one, :, :width].clone()
                    memory[one, :, :width] = memory[other, :, :width]
                    memory[other, :, :width] = held

    @property
    def bytes(self) -> int:
        """Memory in use."""
        held = [m for layer in self._layers() for m in (layer.keys, layer.values) if m is not None]
        return sum(m.numel() * m.element_size() for m in held)


def _resized(memory: Tensor, rows: int, columns: int, keep: Sequence[int], width: int, is_packed: bool) -> Tensor:
    new = _zeros(memory, rows, columns, is_packed)
    index = torch.tensor(list(keep), dtype=torch.int64, device=memory.device)
    new[: len(keep), :, :width] = memory[:, :, :width].index_select(0, index)
    return new


def can_be_kept(network: PreTrainedModel) -> bool:
    """Return whether a network's keys and values can be kept row by row and cut anywhere.

    Layers with a sliding window, linear attention or convolutions lose what a cut needs; attention kernels other than
    ``sdpa`` and ``eager`` take no masks of this kind; without position ids, positions follow from the columns.
    """
    config = network.config
    if config.get_text_config(decoder=True) is not config:
        return False
    if config._attn_implementation not in ("sdpa", "eager") and not has_flash_kernels(network):
        return False
    if "position_ids" not in forward_arguments(type(network)):
        return False
    layers = DynamicCache(config=config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def bytes_per_token(network: PreTrainedModel) -> int:
    """Return the size of one token's keys and values, from the configuration."""
    config: Any = network.config.get_text_config(decoder=True)
    heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    dimension = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    return 2 * int(config.num_hidden_layers) * heads * dimension * network.dtype.itemsize
