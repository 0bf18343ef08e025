"""Weights in 8 or 4 bits, on which low-rank adapters are trained (QLoRA), with the package bitsandbytes."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from turngym.errors import ConfigError, MissingExtra
from turngym.lazy import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Quantize: TypeAlias = Literal["none", "int8", "nf4"]


def require_quantizer(name: str) -> None:
    """Raise for an unknown format, or one whose package is absent, without importing it.

    Raises:
        ConfigError: The format is unknown.
        MissingExtra: The package is not installed.
    """
    known = get_args(Quantize)
    if name not in known:
        raise ConfigError(f"quantize must be one of {', '.join(known)}, got {name!r}.")
    if name != "none" and importlib.util.find_spec("bitsandbytes") is None:
        raise MissingExtra(
            f"weights in {name} need the package bitsandbytes, which is not installed: pip install bitsandbytes, or "
            "pass --quantize none."
        )


def quantized_arguments(name: str, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return what ``from_pretrained`` takes to quantize the linear layers while it loads, the output layer left out.

    Args:
        name: The format; not ``none``.
        dtype: Compute precision, and format of all other weights.
        device: Device of the network, on which it is quantized.
    """
    from transformers import BitsAndBytesConfig

    settings = BitsAndBytesConfig(load_in_8bit=True)
    if name == "nf4":
        settings = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    return {"quantization_config": settings, "dtype": dtype, "device_map": {"": device}}


def dequantize(network: PreTrainedModel) -> None:
    """Give a network plain linear layers with the values of its quantized ones; nothing changes if it has none."""
    if getattr(network, "hf_quantizer", None) is not None:
        network.state_dict()  # a forward pass on a CPU reorders 4-bit weights; this puts them back
        network.dequantize(dtype=network.dtype)
