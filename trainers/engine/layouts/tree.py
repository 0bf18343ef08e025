"""Sequences as paths of a tree: shared prefixes are computed once.

The nodes of the tree are tokens in depth-first order. A token attends to the tokens on its path, so its output equals
that in a separate sequence, and a node's gradient is the sum over the sequences through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from turngym.trainers.core.rows import Integers, Row
from turngym.trainers.engine.layouts.base import Inputs, on, require_no_pictures
from turngym.trainers.engine.layouts.segments import ARGUMENT, Piece, pieces_of


class PackedTree(NamedTuple):
    """A tree in depth-first order.

    Args:
        ids: Token of each node.
        depth: Number of nodes above each node.
        leave: First node after each node's subtree.
        places: Node of every read, concatenated over sequences.
        pieces: Path of each sequence that adds nodes.
    """

    ids: Integers
    depth: Integers
    leave: Integers
    places: Integers
    pieces: Sequence[Piece] = ()


class Tree:
    """One row with each shared prefix once, and a mask by which a token attends to its path.

    With ``sdpa``, each sequence's new tokens attend only to its path. With ``flex_attention``, the mask is a block mask
    whose empty blocks are not computed. Otherwise it has an entry for every pair of tokens.
    """

    name = "tree"
    shares_rows = True
    needs_mask = True

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return groups of sequences that share prefixes, by the nodes of their tree."""
        order = _in_tree_order([sequences[s] for s in chosen])
        chunks: list[list[int]] = []
        nodes, before = 0, None
        for number in order:
            ids = sequences[chosen[number]].ids
            new = len(ids) - (0 if before is None else shared_prefix(before, ids))
            if before is None or nodes + new > max_tokens:
                chunks.append([])
                nodes, new = 0, len(ids)
            chunks[-1].append(chosen[number])
            nodes, before = nodes + new, ids
        return chunks

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return the tree of some sequences."""
        require_no_pictures(sequences, self.name)
        tree = packed_tree(sequences)
        leave = on(tree.leave, device)
        mask = _MASKS.get(attention, dense_mask)(leave)
        more = {ARGUMENT: pieces_of(tree.pieces, len(tree.ids), device)} if attention == "sdpa" else {}
        return Inputs(on(tree.ids[None], device), mask, on(tree.depth[None], device), tree.places, more)


def _in_tree_order(sequences: Sequence[Row]) -> list[int]:
    """Return the indices of sequences sorted by token ids, so common prefixes are adjacent."""
    keys = [row.ids.astype(">u4").tobytes() for row in sequences]
    return sorted(range(len(keys)), key=lambda number: (keys[number], number))


def count_nodes(sequences: Sequence[Row]) -> int:
    """Return the number of nodes of the tree of some sequences."""
    rows = [sequences[number].ids for number in _in_tree_order(sequences)]
    return sum(map(len, rows)) - sum(shared_prefix(one, other) for one, other in pairwise(rows))


def shared_prefix(one: Integers, other: Integers) -> int:
    """Return the length of the longest common prefix.

    >>> shared_prefix(np.array([5, 6, 7]), np.array([5, 6, 8, 9]))
    2
    """
    length = min(len(one), len(other))
    differs = one[:length] != other[:length]
    first = int(differs.argmax()) if length else 0
    return first if length and differs[first] else length


def packed_tree(sequences: Sequence[Row]) -> PackedTree:
    """Return the tree of some sequences.

    >>> rows = [Row.of([5, 6, 7], []), Row.of([5, 8], [])]
    >>> tree = packed_tree(rows)
    >>> tree.ids.tolist(), tree.depth.tolist(), tree.leave.tolist()
    ([5, 6, 7, 8], [0, 1, 2, 1], [4, 3, 3, 4])
    """
    path = np.zeros(max(len(row.ids) for row in sequences), dtype=np.int64)  # nodes of the last sequence
    leave = np.zeros(sum(len(row.ids) for row in sequences), dtype=np.int64)
    ids: list[Integers] = []
    depth: list[Integers] = []
    places: list[Integers] = [path] * len(sequences)
    pieces: list[Piece] = []
    size, before = 0, path[:0]
    for number in _in_tree_order(sequences):
        row = sequences[number]
        shared, length = shared_prefix(before, row.ids), len(row.ids)
        leave[path[shared : len(before)]] = size
        path[shared:length] = np.arange(size, size + length - shared)
        ids.append(row.ids[shared:])
        depth.append(np.arange(shared, length))
        places[number] = path[row.reads.position]
        if shared < length:
            pieces.append(Piece(path[:length].copy(), shared))
        size, before = size + length - shared, row.ids
    leave[path[: len(before)]] = size
    return PackedTree(np.concatenate(ids), np.concatenate(depth), leave[:size], np.concatenate(places), pieces)


def dense_mask(leave: Tensor) -> Tensor:
    """Return the mask of attended tokens, in the last dimension: ancestors of each token."""
    node = torch.arange(len(leave), device=leave.device)
    seen = (node[None] <= node[:, None]) & (node[:, None] < leave[None])
    return seen[None, None]


def _added_mask(leave: Tensor) -> Tensor:
    """Return the same mask as numbers to add to the scores."""
    mask = torch.zeros(1, 1, len(leave), len(leave), device=leave.device)
    return mask.masked_fill_(~dense_mask(leave), torch.finfo(mask.dtype).min)


def block_mask(leave: Tensor) -> Any:
    """Return the same mask for ``flex_attention``, which skips empty blocks."""
    from torch.nn.attention.flex_attention import create_block_mask

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < leave[key])

    return create_block_mask(sees, None, None, len(leave), len(leave), device=leave.device)


_MASKS: dict[str, Callable[[Tensor], Any]] = {"flex_attention": block_mask, "eager": _added_mask}
