"""Automatic choice between rows and a tree."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from turngym.trainers.core.rows import Row
from turngym.trainers.engine.layouts.base import Inputs
from turngym.trainers.engine.layouts.rows import Rows
from turngym.trainers.engine.layouts.tree import Tree, count_nodes

_SHARE = 0.9
"""Maximum share of the tokens of rows for which a tree is faster, because its attention copies keys and values."""


class Auto:
    """A tree if shared prefixes or different lengths make it smaller; rows otherwise."""

    name = "auto"
    shares_rows = True
    needs_mask = True

    def __init__(self) -> None:
        self._rows, self._tree = Rows(), Tree()

    def cut(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
        """Return the micro-batches of the layout with fewer tokens in total.

        Micro-batches of a tree respect the limit on tokens even if laid out as rows.
        """
        rows = self._rows.cut(sequences, chosen, max_tokens)
        trees = self._tree.cut(sequences, chosen, max(1, int(_SHARE * max_tokens)))
        groups = [[[sequences[s] for s in part] for part in parts] for parts in (rows, trees)]
        return trees if sum(map(count_nodes, groups[1])) <= _SHARE * sum(map(_padded, groups[0])) else rows

    def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Inputs:
        """Return the inputs of a network in the layout with fewer tokens."""
        is_smaller = count_nodes(sequences) <= _SHARE * _padded(sequences)
        return (self._tree if is_smaller else self._rows).lay_out(sequences, device, attention)


def _padded(sequences: Sequence[Row]) -> int:
    return len(sequences) * max(len(row.ids) for row in sequences)
