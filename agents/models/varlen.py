"""Variable-length attention of sequences in one row: torch's flash attention, without a mask over all pairs of tokens.

Where no borders of sequences are given, it is the attention that transformers calls ``sdpa``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface

VARLEN = "turngym_varlen"
_LARGEST_HEAD = 256
_CAPABILITY = (8, 0)


def has_flash_kernels(network: PreTrainedModel) -> bool:
    """Return whether torch's flash attention takes a network's keys: 16 bits, on a GPU of 2020 or later."""
    config: Any = network.config.get_text_config(decoder=True)
    dimension = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    return (
        network.device.type == "cuda"
        and network.dtype in (torch.bfloat16, torch.float16)
        and dimension <= _LARGEST_HEAD
        and dimension % 8 == 0
        and torch.cuda.get_device_capability(network.device) >= _CAPABILITY
    )


def borders(starts: Tensor, longest: int) -> dict[str, Any]:
    """Return the arguments of a forward pass that tell sequences in one row apart.

    Args:
        starts: ``[sequence + 1]``, the first token of each sequence and the end of the last one, int32.
        longest: Tokens of the longest sequence.
    """
    return {"cu_seq_lens_q": starts, "cu_seq_lens_k": starts, "max_length_q": longest, "max_length_k": longest}


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int = 0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    if cu_seq_lens_q is None:
        found: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return found
    q, k, v = (each[0].transpose(0, 1) for each in (query, key, value))
    attended = torch.ops.aten._flash_attention_forward(
        q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q, 0.0, True, False, scale=scaling
    )[0]
    return attended[None], None


AttentionInterface.register(VARLEN, _attention)
AttentionMaskInterface.register(VARLEN, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
