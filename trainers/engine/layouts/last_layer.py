"""The last layer of a transformer, computed only where its output is read.

Nothing sees the output of the last layer at other tokens, so its queries, the output of its attention and its
feed-forward block are left out there. Keys and values are those of all tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from torch import Tensor, nn

_CHECKPOINT = "_gradient_checkpointing_func"
_MOST = 0.8
"""Share of read tokens above which nothing is left out."""


@contextmanager
def only_read(backbone: Any, read: Tensor, shape: tuple[int, ...]) -> Iterator[None]:
    """Let the last layer of a transformer compute only at some tokens; the states of others are meaningless.

    A layer with gradient checkpointing computes at the same tokens again in the backward pass.

    Args:
        backbone: The transformer.
        read: Index of each of these tokens, with the tokens of all rows in one line.
        shape: Rows, and tokens of each.
    """
    layers: Any = getattr(backbone, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers) or len(read) > _MOST * math.prod(shape):
        yield
        return
    last: Any = layers[-1]
    narrowed = partial(_narrowed, _token_by_token(last), read, shape)
    before = getattr(last, _CHECKPOINT, None)
    if before is not None:
        setattr(last, _CHECKPOINT, partial(before, context_fn=lambda: (nullcontext(), narrowed())))
    try:
        with narrowed():
            yield
    finally:
        if before is not None:
            setattr(last, _CHECKPOINT, before)


@contextmanager
def _narrowed(modules: Sequence[nn.Module], read: Tensor, shape: tuple[int, ...]) -> Iterator[None]:
    """Let modules compute only at some tokens, and give 0 at others."""
    handles = [each.register_forward_pre_hook(partial(_select, read)) for each in modules]
    handles += [each.register_forward_hook(partial(_spread, read, shape)) for each in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _token_by_token(last: nn.Module) -> list[nn.Module]:
    """Return the parts of the last layer that compute each token's output from that token alone."""
    attention, block = getattr(last, "self_attn", None), getattr(last, "mlp", None)
    found = [getattr(attention, name, None) for name in ("q_proj", "o_proj")]
    found += [block] if isinstance(getattr(block, "down_proj", None), nn.Module) else []
    return [each for each in found if isinstance(each, nn.Module)]


def _select(read: Tensor, _module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (given[0].flatten(0, 1).index_select(0, read)[None], *given[1:])


def _spread(read: Tensor, shape: tuple[int, ...], _module: nn.Module, _given: object, output: Tensor) -> Tensor:
    everywhere = output.new_zeros(math.prod(shape), output.shape[-1]).index_copy(0, read, output[0])
    return everywhere.view(*shape, -1)
