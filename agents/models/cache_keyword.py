"""The name under which a network's forward takes the cache of keys and values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from transformers import PreTrainedModel

_NAMES = ("cache", "past_key_values")
"""In transformers from 5.24 on, and before."""


def cache_keyword(kind: type[PreTrainedModel]) -> str | None:
    """Return the name of a forward's argument for the cache, or None if it takes none.

    Args:
        kind: Class of the network.

    Example:
        >>> from transformers import GPT2LMHeadModel
        >>> cache_keyword(GPT2LMHeadModel) in ("cache", "past_key_values")
        True
    """
    taken = forward_arguments(kind)
    return next((name for name in _NAMES if name in taken), None)


def forward_arguments(kind: type[PreTrainedModel]) -> frozenset[str]:
    """Return the names of a forward's arguments; those that it takes as ``**kwargs`` are not among them."""
    return _arguments(kind.forward)


@functools.cache
def _arguments(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)
