"""Attention piece by piece: of a tree, what each sequence adds to it, over the whole path of that sequence.

A mask over all pairs of tokens computes every pair. Here the new tokens of a sequence attend only to the tokens on its
path, whose keys and values are copied from the tree, so gradients of shared tokens are sums. Concatenated sequences
attend separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from turngym.agents.models.flash import flash_attention, takes
from turngym.trainers.core.rows import Integers
from turngym.trainers.engine.layouts.base import on

ARGUMENT = "tree_pieces"
"""Argument name by which a network's forward pass passes the pieces to its attention."""
_SHORTEST = 0.6
"""Minimum length of a piece relative to the longest one in its bucket."""


class Piece(NamedTuple):
    """The nodes on the path of one sequence; those from ``new`` on are its own."""

    path: Integers
    new: int


class Bucket(NamedTuple):
    """Padded pieces of similar lengths: nodes of queries and keys, and a mask unless attention is causal."""

    query: Tensor
    key: Tensor
    mask: Tensor | None


class Pieces(NamedTuple):
    """All pieces of a tree, and the index of each node among the buckets' queries."""

    buckets: tuple[Bucket, ...]
    place: Tensor


class Borders(NamedTuple):
    """Boundaries of concatenated sequences: starts and end on the device, maximum length, all lengths."""

    starts: Tensor
    longest: int
    lengths: tuple[int, ...]


def borders_of(lengths: Sequence[int], device: torch.device) -> Borders:
    """Return the boundaries of sequences.

    Args:
        lengths: Tokens of each.
        device: Device of the network.
    """
    return Borders(on(np.cumsum([0, *lengths]).astype(np.int32), device), max(lengths), tuple(lengths))


def pieces_of(paths: Sequence[Piece], size: int, device: torch.device) -> Pieces:
    """Return pieces in buckets.

    Args:
        paths: Pieces whose own nodes cover all nodes.
        size: Number of nodes.
        device: Device of the network.
    """
    buckets: list[list[Piece]] = []
    for piece in sorted(paths, key=lambda each: (each.new > 0, each.new - len(each.path))):
        first = buckets[-1][0] if buckets else None
        own = len(piece.path) - piece.new
        if first is None or bool(first.new) != bool(piece.new) or own < _SHORTEST * (len(first.path) - first.new):
            buckets.append([])
        buckets[-1].append(piece)
    place = np.zeros(size, dtype=np.int64)
    found, start = [], 0
    for bucket in buckets:
        query, key, new = _padded(bucket)
        for number, piece in enumerate(bucket):
            nodes = piece.path[piece.new :]
            place[nodes] = start + number * query.shape[1] + np.arange(len(nodes))
        found.append(Bucket(on(query, device), on(key, device), _mask(new, query.shape[1], key.shape[1], device)))
        start += query.size
    return Pieces(tuple(found), on(place, device))


def _padded(bucket: Sequence[Piece]) -> tuple[Integers, Integers, Integers]:
    """Return nodes of queries and keys as matrices, and the number of shared tokens of each path."""
    new = np.array([piece.new for piece in bucket], dtype=np.int64)
    query = np.zeros((len(bucket), max(len(piece.path) - piece.new for piece in bucket)), dtype=np.int64)
    key = np.zeros((len(bucket), max(len(piece.path) for piece in bucket)), dtype=np.int64)
    for number, piece in enumerate(bucket):
        query[number, : len(piece.path) - piece.new] = piece.path[piece.new :]
        key[number, : len(piece.path)] = piece.path
    return query, key, new


def _mask(new: Integers, queries: int, keys: int, device: torch.device) -> Tensor | None:
    """Return the attention mask; None if queries and keys start with the first token of their sequences."""
    if not new.any():
        return None
    offsets = on(np.unique(new) if (new == new[0]).all() else new, device)
    last = offsets[:, None] + torch.arange(queries, device=device)
    return (torch.arange(keys, device=device) <= last[..., None])[:, None]


_attend = ALL_ATTENTION_FUNCTIONS["sdpa"]


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **given: Any
) -> tuple[Tensor, Any]:
    """Attention like transformers' ``sdpa``; per piece if the forward pass has pieces or boundaries."""
    pieces: Pieces | Borders | None = given.pop(ARGUMENT, None)
    if pieces is None:
        found: tuple[Tensor, Any] = _attend(module, query, key, value, attention_mask, **given)
        return found
    given["is_causal"] = True
    if isinstance(pieces, Borders):
        return _within(pieces, module, query, key, value, given), None
    outputs = []
    for bucket in pieces.buckets:
        parts = (_taken(query, bucket.query), _taken(key, bucket.key), _taken(value, bucket.key))
        outputs.append(_attend(module, *parts, bucket.mask, **given)[0].flatten(0, 1))
    return torch.cat(outputs).index_select(0, pieces.place)[None], None


def _within(borders: Borders, module: Any, query: Tensor, key: Tensor, value: Tensor, given: dict[str, Any]) -> Tensor:
    """Attention within each of several sequences in one row."""
    window: int | None = given.get("sliding_window")
    if takes(query.device, query.dtype, query.shape[-1]):
        q, k, v = (each[0].transpose(0, 1) for each in (query, key, value))
        starts, longest = (borders.starts, borders.starts), (borders.longest, borders.longest)
        return flash_attention(q, k, v, starts, longest, given.get("scaling"), window=window)[None]
    parts = zip(*(each.split(borders.lengths, dim=2) for each in (query, key, value)), strict=True)
    outputs = [_attend(module, *part, _window_mask(part[0], window), **given)[0] for part in parts]
    return torch.cat(outputs, dim=1)


def _window_mask(query: Tensor, window: int | None) -> Tensor | None:
    """Return the mask of a sequence with a sliding window; None if attention covers all earlier tokens."""
    if window is None or window >= query.shape[2]:
        return None
    number = torch.arange(query.shape[2], device=query.device)
    back = number[:, None] - number
    return ((back >= 0) & (back < window))[None, None]


def _taken(states: Tensor, nodes: Tensor) -> Tensor:
    """Return the states of nodes as ``[row, head, token, width]``."""
    tokens = states[0].transpose(0, 1).index_select(0, nodes.flatten())
    return tokens.view(*nodes.shape, *tokens.shape[1:]).transpose(1, 2)


ALL_ATTENTION_FUNCTIONS["sdpa"] = attend
