"""The network's passes without padding: the new tokens of all rows as one sequence, with variable-length attention.

On a GPU a decode step costs more in kernel launches than in work, so the step of a number of rows is captured in a CUDA
graph once and replayed; several steps run before the host reads what was sampled.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from turngym.agents.models.flash import flash_attention, has_flash_kernels
from turngym.agents.models.forward_pass import cache_keyword, forward_arguments
from turngym.agents.models.kv_cache.memory import Memory
from turngym.agents.models.kv_cache.norms import fuse_norms
from turngym.agents.models.kv_cache.slots import Slots

_IMPLEMENTATION = "turngym_packed"
_BATCH_TOKENS = 16_384
_BURST = 8
"""Decode steps between two looks of the host at what was sampled."""
_LEAST_ROWS = 8


class PackedPlace:
    """Cache slots written and read by the next forward pass; a slot is a column of a row.

    Args:
        slots: ``[token]``, the slot that each new token is written to.
        starts: ``[sequence + 1]``, the first new token of each sequence, int32.
        rows: ``[sequence + 1]``, the first slot of each sequence's row, int32.
        used: ``[sequence]``, tokens of each row after the pass, int32.
        longest: Maximum number of new tokens in a sequence.
        columns: Slots in a row.
    """

    def __init__(self, slots: Tensor, starts: Tensor, rows: Tensor, used: Tensor, longest: int, columns: int) -> None:
        self.slots = slots
        self.starts = starts
        self.rows = rows
        self.used = used
        self.longest = longest
        self.columns = columns

    def write(self, memory: Tensor, new: Tensor) -> Tensor:
        """Write the keys or values of new tokens, and return those of all slots, ``[slot, head, dimension]``."""
        flat = memory.transpose(1, 2).flatten(0, 1)
        flat.index_copy_(0, self.slots, new[0].transpose(0, 1))
        return flat


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    *,
    place: PackedPlace,
    **kwargs: object,
) -> tuple[Tensor, None]:
    starts, longest = (place.starts, place.rows), (place.longest, place.columns)
    return flash_attention(query[0].transpose(0, 1), key, value, starts, longest, scaling, place.used)[None], None


AttentionInterface.register(_IMPLEMENTATION, _attention)


def packing_pays(network: PreTrainedModel) -> bool:
    """Return whether a network can run without padding; a copy of quantized layers would not share their weights."""
    if getattr(network, "hf_quantizer", None) is not None:
        return False
    return has_flash_kernels(network) and "logits_to_keep" in forward_arguments(type(network))


class PackedForward:
    """Runs a network on rows of a memory, without padding.

    Args:
        network: A causal language model.
        memory: Its keys and values, slots of a row one after the other.
        slots: The tokens behind these.
    """

    burst = _BURST
    takes_first_rows = False

    def __init__(self, network: PreTrainedModel, memory: Memory, slots: Slots) -> None:
        self._source = network
        self._shared = _tensors(network)
        self.network = _with_packed_attention(network)
        self.memory = memory
        self.slots = slots
        self._steps: dict[int, _Step] = {}
        self._state: tuple[object, ...] = ()

    def follow(self) -> None:
        """Share the tensors of the network again, if some were replaced."""
        now = _tensors(self._source)
        if len(now) != len(self._shared) or any(a is not b for a, b in zip(now, self._shared, strict=True)):
            self._shared, self._steps = now, {}
            self.network = _with_packed_attention(self._source)

    def prefill(self, new: Sequence[tuple[int, NDArray[np.int64]]]) -> dict[int, Tensor]:
        """Append tokens to rows; returns row -> the logits of its next token."""
        logits: dict[int, Tensor] = {}
        rest = list(new)
        while rest:
            batch, rest = _first(rest)
            logits.update(zip((row for row, _ in batch), self._append(batch), strict=True))
        return logits

    def _append(self, batch: Sequence[tuple[int, NDArray[np.int64]]]) -> Tensor:
        width = self.memory.columns + 1
        counts = np.array([len(tokens) for _, tokens in batch])
        ends = counts.cumsum()
        positions = np.concatenate([self.slots.lengths[row] + np.arange(len(tokens)) for row, tokens in batch])
        firsts = np.array([row * width for row, _ in batch] + [0])
        slots = positions + np.repeat(firsts[:-1], counts)
        used = np.array([self.slots.lengths[row] + len(tokens) for row, tokens in batch])
        ids = np.concatenate([tokens for _, tokens in batch])
        for row, tokens in batch:
            self.slots.append(row, tokens)
        wide = self._upload(np.stack([ids, positions, slots]))
        narrow = self._upload(np.concatenate([[0], ends, firsts, used, ends - 1]).astype(np.int32))
        starts, rows, filled, lasts = narrow.split([len(ends) + 1, len(firsts), len(used), len(ends)])
        place = PackedPlace(wide[2], starts, rows, filled, int(counts.max()), width)
        return _logits(self.network, self.memory, place, wide[:1], wide[1:2], lasts.long())

    def _upload(self, numbers: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers)).to(self.network.device)

    def decode(self, tokens: dict[int, int], steps: int, draw: Callable[[Tensor, int], Tensor]) -> None:
        """Append tokens to rows, several times over.

        Args:
            tokens: Row -> its first token.
            steps: Number of passes.
            draw: Takes logits ``[row, vocab]`` and the number of the step, returns the tokens ``[row]`` that follow.
        """
        step = self._step(len(tokens))
        step.start(self._upload(self._of_rows(tokens, step.size)))
        for number in range(steps):
            drawn = draw(step.logits()[: len(tokens)], number)
            if number + 1 < steps:
                step.feed(drawn)

    def _of_rows(self, tokens: dict[int, int], size: int) -> NDArray[np.int64]:
        """Return what a step reads of each row: token, position, slot, tokens in the row, its first slot, advance."""
        width, count = self.memory.columns + 1, len(tokens)
        rows = np.fromiter(tokens, dtype=np.int64)
        found = np.zeros((6, size), dtype=np.int64)
        lengths = self.slots.lengths[rows]
        found[:, :count] = (
            list(tokens.values()),
            lengths,
            rows * width + lengths,
            lengths + 1,
            rows * width,
            [1] * count,
        )
        found[2, count:] = width - 1  # rows that are computed and not used: the column for padding
        found[3, count:] = 1
        return found

    def _step(self, rows: int) -> _Step:
        state = (self.memory.version, *(each.data_ptr() for each in self.network.parameters()))
        if state != self._state:
            self._steps, self._state = {}, state
        size = max(_LEAST_ROWS, 1 << (rows - 1).bit_length())
        if size not in self._steps:
            self._steps[size] = _Step(self.network, self.memory, size)
        return self._steps[size]


class _Step:
    """A pass of one token for each of ``size`` rows, in tensors that stay where they are, captured in a graph."""

    def __init__(self, network: PreTrainedModel, memory: Memory, size: int) -> None:
        device = network.device
        self.size = size
        self._network = network
        self._memory = memory
        self._wide = torch.zeros(6, size, dtype=torch.int64, device=device)
        self._rows = torch.zeros(size + 1, dtype=torch.int32, device=device)
        self._used = torch.ones(size, dtype=torch.int32, device=device)
        starts = torch.arange(size + 1, dtype=torch.int32, device=device)
        self._place = PackedPlace(self._wide[2], starts, self._rows, self._used, 1, memory.columns + 1)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._output = torch.empty(0)

    def start(self, of_rows: Tensor) -> None:
        """Take what the first step reads, see :meth:`PackedForward._of_rows`."""
        self._wide.copy_(of_rows)
        self._used.copy_(of_rows[3])
        self._rows[:-1] = of_rows[4]
        if self._graph is None and self._wide.is_cuda:
            self._capture()

    def feed(self, tokens: Tensor) -> None:
        """Take the tokens that follow."""
        self._wide[0, : len(tokens)] = tokens
        self._wide[1:3] += self._wide[5]
        self._used += self._wide[5].int()

    def logits(self) -> Tensor:
        """Run the pass; returns ``[row, vocab]``, valid until the next one."""
        if self._graph is None:
            return self._run()
        self._graph.replay()
        return self._output

    def _run(self) -> Tensor:
        return _logits(self._network, self._memory, self._place, self._wide[:1], self._wide[1:2], 0)

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._output = self._run()
        except RuntimeError as error:
            warnings.warn(f"decoding runs without CUDA graphs, which is slower: {error}", stacklevel=2)
        else:
            self._graph = graph


def _logits(
    network: PreTrainedModel, memory: Memory, place: PackedPlace, ids: Tensor, positions: Tensor, keep: Tensor | int
) -> Tensor:
    memory.set_place(place)
    held = {cache_keyword(type(network)) or "past_key_values": memory}
    output: Any = network(
        input_ids=ids, position_ids=positions, logits_to_keep=keep, use_cache=True, place=place, **held
    )
    logits: Tensor = output.logits[0]
    return logits


def _tensors(network: PreTrainedModel) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]


def _with_packed_attention(network: PreTrainedModel) -> PreTrainedModel:
    """Return a copy that shares all tensors and computes its attention here."""
    found: PreTrainedModel = copy.deepcopy(network, {id(tensor): tensor for tensor in _tensors(network)}).eval()
    found.config._attn_implementation = _IMPLEMENTATION
    fuse_norms(found)
    return found


def _first(
    rest: Sequence[tuple[int, NDArray[np.int64]]],
) -> tuple[list[tuple[int, NDArray[np.int64]]], list[tuple[int, NDArray[np.int64]]]]:
    """Return the tokens of the next pass, and those after it."""
    batch, free, later = [], _BATCH_TOKENS, []
    for row, tokens in rest:
        taken = tokens[:free]
        free -= len(taken)
        if len(taken):
            batch.append((row, taken))
        if len(taken) < len(tokens):
            later.append((row, tokens[len(taken) :]))
    return batch, later
