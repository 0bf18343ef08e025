"""Drafts of the next tokens: what followed the last tokens when they occurred before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PAYS = 0.8
"""Accepted tokens a sequence for which a wider pass pays: one with 8 positions takes 1.7 to 1.9 times as long as one
with a single position (SmolLM2-135M, float32, one core with AVX2)."""
TRUST, RECOVERY = 2.0, 0.1
"""Drafted tokens that a new request is taken to accept, and what a pass without a draft adds up to that."""
_LONGEST, _SHORTEST = 3, 2
_POSITIONS = 16
"""Maximum positions of a pass, drafts included: above, a pass costs what its products cost, not what its weights do."""


def draft(tokens: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return what followed the latest earlier occurrence of a sequence's last three tokens, or else its last two.

    Tokens that a reply copies from its prompt are found this way without another model (prompt lookup decoding,
    https://github.com/apoorvumang/prompt-lookup-decoding).

    Args:
        tokens: ``[token]``, prompt and completion so far.
        most: Maximum length of the draft.

    Returns:
        The draft, ``[token]``; empty where nothing was found.

    Example:
        >>> draft(np.array([5, 6, 7, 8, 9, 5, 6]), 2)
        array([7, 8])
    """
    for size in range(_LONGEST, _SHORTEST - 1, -1):
        if len(tokens) <= size or most < 1:
            continue
        found = np.ones(len(tokens) - size, dtype=bool)
        for offset in range(size):
            found &= tokens[offset : offset + len(found)] == tokens[offset - size]
        places = np.flatnonzero(found)
        if len(places):
            start = int(places[-1]) + size
            return tokens[start : start + most]
    return tokens[:0]


def room(draft_tokens: int, rows: int) -> int:
    """Return the maximum length of the drafts of a pass.

    Args:
        draft_tokens: The sampler's limit.
        rows: Sequences in the pass.

    Example:
        >>> room(8, 1), room(8, 8), room(8, 64)
        (8, 1, 0)
    """
    return min(draft_tokens, _POSITIONS // rows - 1) if rows <= _POSITIONS else 0
