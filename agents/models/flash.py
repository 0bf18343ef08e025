"""Flash attention of torch for sequences of different lengths that lie one after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

_LARGEST_HEAD = 256
_CAPABILITY = (8, 0)
_FORMATS = (torch.bfloat16, torch.float16)


def has_flash_kernels(network: PreTrainedModel) -> bool:
    """Return whether flash attention takes a network's keys: 16 bits, on a GPU of compute capability 8.0 or later."""
    config: Any = network.config.get_text_config(decoder=True)
    dimension = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    return takes(network.device, network.dtype, dimension)


def takes(device: torch.device, dtype: torch.dtype, dimension: int) -> bool:
    """Return whether there is a kernel for a device, a format and the dimension of a head.

    >>> takes(torch.device("cpu"), torch.bfloat16, 64)
    False
    """
    if device.type != "cuda" or dtype not in _FORMATS or dimension > _LARGEST_HEAD or dimension % 8:
        return False
    return torch.cuda.get_device_capability(device) >= _CAPABILITY


def flash_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: tuple[Tensor, Tensor],
    longest: tuple[int, int],
    scale: float | None,
    used: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    """Return the attention of each token to those of its sequence up to itself, ``[token, head, dimension]``.

    Args:
        query: ``[token, head, dimension]``.
        keys: ``[token, head, dimension]``, of as many or fewer heads.
        values: The same shape.
        starts: Of the queries and of the keys, ``[sequence + 1]``: the first token of each sequence and the end, int32.
        longest: Maximum number of queries and of keys in a sequence.
        scale: Factor of the products; None is one over the root of the dimension.
        used: ``[sequence]``, number of its keys that count, the queries' own being the last of these, int32.
        window: Number of tokens that a query sees, itself included; None is all.
    """
    found: Tensor = torch.ops.aten._flash_attention_forward(
        query,
        keys,
        values,
        *starts,
        *longest,
        0.0,  # dropout
        True,  # causal
        False,
        scale=scale,
        window_size_left=None if window is None else window - 1,
        window_size_right=None if window is None else 0,
        seqused_k=used,
    )[0]
    return found
