"""Compute precision of a run: names and device support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from turngym.errors import ConfigError
from turngym.lazy import torch

Precision: TypeAlias = Literal["auto", "fp32", "bf16", "fp16"]
Dtype: TypeAlias = Literal["float32", "float16", "bfloat16"]
DTYPES: Mapping[str, Dtype] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Precision -> data type of the network's weights."""


def has_fast_bf16(device: torch.device) -> bool:
    """Return True if a device is faster in bfloat16 than in float32.

    A CPU needs AMX or AVX-512 bf16; otherwise bfloat16 is emulated and slower.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())
    return False


def chosen_precision(name: Precision, device: torch.device) -> Precision:
    """Return the precision of a run on a device; ``auto`` is bfloat16 if faster, otherwise float32.

    Args:
        name: A precision.
        device: Device of the network.

    Raises:
        ConfigError: The device does not support it.

    >>> chosen_precision("fp32", torch.device("cpu"))
    'fp32'
    """
    if name == "auto":
        return "bf16" if has_fast_bf16(device) else "fp32"
    if name == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16 needs a GPU, and the model is on the CPU: pass --precision bf16 or fp32.")
    if name == "bf16" and device.type == "cuda" and not has_fast_bf16(device):
        raise ConfigError(
            f"{torch.cuda.get_device_name(device)} does not compute in bfloat16: pass --precision fp16 or fp32."
        )
    return name


def dtype_of(precision: str) -> torch.dtype:
    """Return the data type of the network's weights in a precision other than ``auto``.

    >>> dtype_of("bf16")
    torch.bfloat16
    """
    found: torch.dtype = getattr(torch, DTYPES[precision])
    return found
