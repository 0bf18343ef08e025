"""Implementations of attention: which can be used here, and putting one into a network."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

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


def grouped_attention(network: PreTrainedModel) -> dict[str, bool]:
    """Return arguments of a forward pass without gradients that let a CPU read keys and values once per group of heads.

    For several tokens and a mask, transformers copies them for every query head first, which takes longer than the
    attention itself. The result is the same to the bit.

    Args:
        network: A causal language model; nothing is returned for one that cannot do so.
    """
    from turngym.agents.models.forward_pass import forward_arguments  # imports torch, which settings do without

    is_sdpa = network.config._attn_implementation == "sdpa"
    if network.device.type != "cpu" or not is_sdpa or "kwargs" not in forward_arguments(type(network)):
        return {}
    _register_grouped()
    return {_GROUPED: True}


_GROUPED = "turngym_grouped_heads"


@cache
def _register_grouped() -> None:
    """Let the attention named ``sdpa`` know the argument; calls without it run as before."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    plain = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def attention(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *,
        scaling: float | None = None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, None]:
        is_special = any(kwargs.get(name) is not None for name in ("position_bias", "softcap"))
        if not kwargs.pop(_GROUPED, False) or attention_mask is None or query.shape[2] == 1 or is_special:
            found: tuple[torch.Tensor, None] = plain(
                module, query, key, value, attention_mask, scaling=scaling, **kwargs
            )
            return found
        attend = torch.nn.functional.scaled_dot_product_attention
        output = attend(query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=True)
        return output.transpose(1, 2).contiguous(), None

    ALL_ATTENTION_FUNCTIONS["sdpa"] = attention
