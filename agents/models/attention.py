"""Implementations of attention: which can be used here, and putting one into a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from turngym.errors import ConfigError, error_text
from turngym.lazy import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Attention: TypeAlias = Literal["sdpa", "flash_attention_2", "flex_attention"]
ATTENTIONS: tuple[Attention, ...] = get_args(Attention)


def require_attention(name: str, device: torch.device) -> None:
    """Raise for attention that cannot train on a device.

    Args:
        name: One of :data:`ATTENTIONS`.
        device: Device of the model.

    Raises:
        ConfigError: It is unknown, its package is not installed, or the device cannot do it.

    >>> require_attention("sdpa", torch.device("cpu"))
    """
    if name not in ATTENTIONS:
        raise ConfigError(f"attention must be one of {', '.join(ATTENTIONS)}, got {name!r}.")
    if name == "flash_attention_2":
        from transformers.utils.import_utils import is_flash_attn_2_available

        if not is_flash_attn_2_available():
            raise ConfigError(
                "flash_attention_2 needs a GPU and the package flash-attn, and one of them is absent: pip install "
                "flash-attn, or pass --attention sdpa."
            )
    if name != "sdpa" and device.type == "cpu":
        raise ConfigError(f"{name} computes no gradients on a CPU: pass --attention sdpa, or a GPU with --device.")


def set_attention(network: PreTrainedModel, name: str) -> None:
    """Let a network compute its attention in another way; ``sdpa`` leaves what transformers chose.

    Raises:
        ConfigError: Its architecture does not have that attention.
    """
    if name == "sdpa":
        return
    try:
        network.set_attn_implementation(name)
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"a {type(network).__name__} does not work with {name} ({error_text(error)}): pass --attention sdpa."
        ) from error
