"""The network's passes over rows of the memory: new tokens in chunks, and one token for each running row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.attention import grouped_attention
from turngym.agents.models.forward_pass import logits_of_last
from turngym.agents.models.kv_cache.memory import Memory, Place, Rows
from turngym.agents.models.kv_cache.slots import Slots

_CHUNK = 512
"""Longest piece of a sequence that goes through the network at once."""
_BATCH_TOKENS = 4096
"""Maximum tokens of a pass, padding included."""


class Forward:
    """Runs a network on rows of a memory, padded to one width.

    Args:
        network: A causal language model.
        memory: Its keys and values.
        slots: The tokens behind these.
    """

    burst = 1
    takes_first_rows = True

    def __init__(self, network: PreTrainedModel, memory: Memory, slots: Slots) -> None:
        self.network = network
        self.memory = memory
        self.slots = slots

    def follow(self) -> None:
        """Do nothing: the passes run on the network itself."""

    def prefill(self, new: Sequence[tuple[int, NDArray[np.int64]]]) -> dict[int, Tensor]:
        """Append tokens to rows; returns row -> the logits of its next token."""
        logits: dict[int, Tensor] = {}
        rest = list(new)
        while rest:
            for batch in _batches([(row, tokens[:_CHUNK]) for row, tokens in rest]):
                logits.update(zip((row for row, _ in batch), self._append(batch), strict=True))
            rest = [(row, tokens[_CHUNK:]) for row, tokens in rest if len(tokens) > _CHUNK]
        return logits

    def _append(self, batch: Sequence[tuple[int, NDArray[np.int64]]]) -> Tensor:
        """Run a left-padded batch; padding is written to a scratch column."""
        width = max(len(tokens) for _, tokens in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        positions = np.zeros((len(batch), width), dtype=np.int64)
        columns = np.full((len(batch), width), self.memory.columns, dtype=np.int64)
        for i, (row, tokens) in enumerate(batch):
            start, free = int(self.slots.lengths[row]), width - len(tokens)
            ids[i, free:] = tokens
            positions[i, free:] = columns[i, free:] = np.arange(start, start + len(tokens))
            self.slots.append(row, tokens)
        return self._run(_rows_of([row for row, _ in batch], self.network.device), ids, positions, columns)[:, -1]

    def decode(self, tokens: dict[int, int], steps: int, draw: Callable[[Tensor, int], Tensor]) -> None:
        """Append a token to each running row.

        Args:
            tokens: Row -> token. Rows between them are computed and not used.
            steps: Number of passes, 1 here.
            draw: Takes the logits ``[row, vocab]`` and the number of the step.
        """
        draw(self.check({row: [token] for row, token in tokens.items()})[:, 0], 0)

    def check(self, tokens: dict[int, list[int]]) -> Tensor:
        """Run several tokens of each running row, of which the caller keeps the first ones.

        Args:
            tokens: Row -> its next tokens. Rows between them are computed and not used.

        Returns:
            Logits after each token, ``[row, token, vocab]``; those after a row's last token mean nothing.
        """
        count, width = max(tokens) + 1, max(map(len, tokens.values()))
        ids = np.zeros((count, width), dtype=np.int64)
        positions = np.zeros((count, width), dtype=np.int64)
        columns = np.full((count, width), self.memory.columns, dtype=np.int64)
        for row, new in tokens.items():
            start = int(self.slots.lengths[row])
            ids[row, : len(new)] = new
            positions[row, : len(new)] = columns[row, : len(new)] = np.arange(start, start + len(new))
        logits = self._run(slice(0, count), ids, positions, columns, width)
        rows = list(tokens)
        is_all = rows == list(range(count))
        return logits if is_all else logits[torch.tensor(rows, device=logits.device)]

    def _run(
        self,
        rows: Rows,
        ids: NDArray[np.int64],
        positions: NDArray[np.int64],
        columns: NDArray[np.int64],
        keep: int = 1,
    ) -> Tensor:
        device = self.network.device
        width = int(positions.max()) + 1
        where = torch.from_numpy(positions).to(device)
        self.memory.set_place(Place(rows, torch.from_numpy(columns).to(device), width))
        return logits_of_last(
            keep,
            self.network,
            self.memory,
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=self._mask(where, width),
            position_ids=where,
            **grouped_attention(self.network),
        )

    def _mask(self, positions: Tensor, width: int) -> Tensor:
        """Let every token read the columns up to its own position; padding reads the first one."""
        is_read = (torch.arange(width, device=positions.device) <= positions[..., None])[:, None]
        if self.network.config._attn_implementation != "eager":
            return is_read
        dtype = self.network.dtype
        return torch.zeros((), dtype=dtype, device=positions.device).where(is_read, torch.finfo(dtype).min)


def _rows_of(rows: Sequence[int], device: torch.device) -> Rows:
    """Return rows as a slice where they are neighbours."""
    if list(rows) == list(range(rows[0], rows[0] + len(rows))):
        return slice(rows[0], rows[0] + len(rows))
    return torch.tensor(rows, device=device)


def _batches(
    new: Sequence[tuple[int, NDArray[np.int64]]],
) -> Iterator[list[tuple[int, NDArray[np.int64]]]]:
    """Yield batches of rows with about the same number of new tokens, neighbours together."""
    ordered = sorted(new, key=lambda each: (len(each[1]).bit_length() if len(each[1]) > 16 else 0, each[0]))
    batch: list[tuple[int, NDArray[np.int64]]] = []
    for row, tokens in ordered:
        widths = [len(t) for _, t in batch] + [len(tokens)]
        is_uneven = max(widths) > 16 and max(widths) > 2 * min(widths)
        if batch and (max(widths) * len(widths) > _BATCH_TOKENS or is_uneven):
            yield batch
            batch = []
        batch.append((row, tokens))
    if batch:
        yield batch
