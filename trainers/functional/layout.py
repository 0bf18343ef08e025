"""Conversion between one entry per token and padded rows of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class TokenRows:
    """Positions of the tokens of a batch in padded rows.

    Args:
        mask: Entries of the padded rows that hold a token; in row-major order they are the tokens in their order.
    """

    mask: Bool[Tensor, "row token"]

    @classmethod
    def of(cls, rows: Int[Tensor, "token"], num_rows: int) -> TokenRows:
        """Return the layout for tokens whose rows are given and do not decrease."""
        lengths = torch.bincount(rows, minlength=num_rows)
        longest = int(lengths.max()) if num_rows else 0
        return cls(torch.arange(longest)[None, :] < lengths[:, None])

    def pad(self, column: Float[Tensor, "entry"]) -> Float[Tensor, "row token"]:
        """Lay a column over tokens out in padded rows, 0 elsewhere."""
        return torch.zeros(self.mask.shape, dtype=column.dtype).masked_scatter(self.mask, column)

    def unpad(self, padded: Float[Tensor, "row token"]) -> Float[Tensor, "entry"]:
        """Undo :meth:`pad`."""
        return padded[self.mask]
