"""Rejects layouts in which a network's results would differ from those of separate rows."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.errors import ConfigError
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.read_states import read_states

_TOLERANCE = 1e-3
_TOLERANCE_16_BIT = 5e-2
_ATTENTION = {"full_attention", "sliding_attention"}
_WAY_OUT = "Pass --update.layout rows."
_checked: weakref.WeakKeyDictionary[nn.Module, dict[str, str]] = weakref.WeakKeyDictionary()
"""Network -> layout -> reason against it; empty for none."""


def require_layout(network: PreTrainedModel, layout: Layout) -> None:
    """Raise if sequences in a shared row would change each other's outputs; a network is checked once.

    Args:
        network: A causal language model.
        layout: Layout of the sequences.

    Raises:
        ConfigError: They would, or the attention does not support the layout's mask.
    """
    found = _objection(network, layout)
    if found:
        raise ConfigError(found)


def fits(network: PreTrainedModel, layout: Layout) -> bool:
    """Return True if :func:`require_layout` accepts a network."""
    return not _objection(network, layout)


def _objection(network: PreTrainedModel, layout: Layout) -> str:
    if not layout.shares_rows:
        return ""
    known = _checked.setdefault(network, {})
    if layout.name not in known:
        known[layout.name] = _found_objection(network, layout)
    return known[layout.name]


def _found_objection(network: PreTrainedModel, layout: Layout) -> str:
    config = network.config.get_text_config()
    found = _against_attention(type(network).__name__, config, layout)
    if found:
        return found
    gap = _gap(network, layout)
    if gap <= (_TOLERANCE if network.dtype.itemsize > 2 else _TOLERANCE_16_BIT):
        return ""
    return (
        f"the outputs of a {type(network).__name__} in the layout {layout.name} differ by {gap:.2g} of their size "
        f"from those of separate rows, so its layers mix neighbouring sequences. {_WAY_OUT}"
    )


def same_layouts(copy: nn.Module, network: nn.Module) -> None:
    """Reuse the checked layouts of a network for a copy of it."""
    _checked.setdefault(copy, {}).update(_checked.get(network, {}))


def _against_attention(model: str, config: Any, layout: Layout) -> str:
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - _ATTENTION:
        return (
            f"a {model} has layers of {', '.join(sorted(kinds - _ATTENTION))}, which mix neighbouring tokens whatever "
            f"the attention mask, so the layout {layout.name} would mix sequences. {_WAY_OUT}"
        )
    if not layout.needs_mask:
        return ""
    window = getattr(config, "sliding_window", None) or getattr(config, "attention_chunk_size", None)
    if window and window < config.max_position_embeddings:
        return (
            f"a {model} has layers that see the last {window} tokens only, which the mask of the layout {layout.name} "
            "does not express. Pass --update.layout rows or packed."
        )
    if str(config._attn_implementation).startswith("flash_attention"):
        return (
            f"{config._attn_implementation} takes no mask, which the layout {layout.name} needs: pass --attention sdpa "
            "or flex_attention, or --update.layout packed."
        )
    return ""


@torch.no_grad()
def _gap(network: PreTrainedModel, layout: Layout) -> float:
    """Return the relative difference of hidden states of a few sequences from those in separate rows."""
    words = network.config.get_text_config().vocab_size
    ids = np.arange(12, dtype=np.int64) * 7919 % words
    rows = [_read_everywhere(each) for each in (ids[:7], np.concatenate([ids[:4], ids[7:]]), ids[9:])]

    def states(how: Layout) -> Tensor:
        found = read_states(network.base_model, rows, network.device, how)
        return found.hidden.index_select(0, found.state).double()

    expected = states(ROWS)
    return float((states(layout) - expected).norm() / expected.norm())


def _read_everywhere(ids: np.ndarray[Any, np.dtype[np.int64]]) -> Row:
    return Row.of(ids.tolist(), [Read(position, -1, -1, -1, 0) for position in range(len(ids))])
