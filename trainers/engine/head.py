"""The head of a language model, which maps hidden states to logits."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.errors import ModelError

_TOLERANCE = 1e-3
_TOLERANCE_16_BIT = 2e-2
_checked: weakref.WeakKeyDictionary[nn.Module, tuple[float, float]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Head:
    """Head with logits ``scale * (hidden @ weight.T + bias + adapters)``, bounded by ``softcap`` if not 0.

    Args:
        weight: One row per token of the vocabulary.
        bias: One number per token of the vocabulary.
        adapters: Matrices A and B of every active adapter, and the factor of their product.
        scale: Factor of the logits.
        softcap: Logits become ``softcap * tanh(logits / softcap)``; 0 for no bound.
    """

    weight: Tensor
    bias: Tensor | None = None
    adapters: tuple[tuple[Tensor, Tensor, float], ...] = ()
    scale: float = 1.0
    softcap: float = 0.0

    @property
    def words(self) -> int:
        """Size of the vocabulary."""
        return self.weight.shape[0]

    def factors(self, hidden: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return states and matrices whose products sum to the logits, before bias, scale and softcap."""
        low = [(factor * (hidden.to(a.dtype) @ a.T), b) for a, b, factor in self.adapters]
        return [(hidden, self.weight), *low]

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of hidden states, in the data type of the product."""
        (first, weight), *low = self.factors(hidden)
        found = nn.functional.linear(first.to(weight.dtype), weight, self.bias)
        for states, matrix in low:
            found = found + nn.functional.linear(states.to(matrix.dtype), matrix)
        if self.scale != 1:
            found = found * self.scale
        return self.softcap * torch.tanh(found / self.softcap) if self.softcap else found


def head_of(network: PreTrainedModel) -> Head:
    """Return the head of a network.

    The first call compares its logits with the network's own.

    Raises:
        ModelError: The network computes its logits differently.
    """
    if network not in _checked:
        _checked[network] = _found_form(network)
    scale, softcap = _checked[network]
    return replace(_linear_head(network), scale=scale, softcap=softcap)


def same_head(copy: nn.Module, network: nn.Module) -> None:
    """Reuse the verified form of a network's head for a copy of it."""
    if network in _checked:
        _checked[copy] = _checked[network]


def _linear_head(network: PreTrainedModel) -> Head:
    layer: Any = network.get_output_embeddings()
    base: Any = layer.get_base_layer() if hasattr(layer, "get_base_layer") else layer
    if not isinstance(base, nn.Linear):
        raise ModelError(
            f"the head of a {type(network).__name__} is a {type(base).__name__}, expected a linear layer: take a "
            "causal language model whose logits are a matrix times its last hidden states."
        )
    return Head(base.weight, base.bias, () if layer is base else _adapters(layer))


def _adapters(layer: Any) -> tuple[tuple[Tensor, Tensor, float], ...]:
    """Return the active low-rank adapters of a layer."""
    if layer.disable_adapters or layer.merged:
        return ()
    names = [name for name in layer.active_adapters if name in layer.lora_A]
    return tuple((layer.lora_A[n].weight, layer.lora_B[n].weight, float(layer.scaling[n])) for n in names)


@torch.no_grad()
def _found_form(network: PreTrainedModel) -> tuple[float, float]:
    """Return the scale and softcap that reproduce the network's logits of a few tokens."""
    head = _linear_head(network)
    ids = torch.arange(8, device=network.device)[None] * (head.words - 1) // 7
    own = network(input_ids=ids, use_cache=False).logits[0].double()
    hidden = network.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
    tolerance = (_TOLERANCE if network.dtype.itemsize > 2 else _TOLERANCE_16_BIT) * max(1.0, float(own.abs().max()))
    gaps = []
    for scale, softcap in _forms(network.config.get_text_config()):
        found = replace(head, scale=scale, softcap=softcap).logits(hidden).double()
        gaps.append(float((found - own).abs().max()) if found.shape == own.shape else float("inf"))
        if gaps[-1] <= tolerance:
            return scale, softcap
    raise ModelError(
        f"the logits of a {type(network).__name__} are not its head times its last hidden states (they differ by "
        f"{min(gaps):.2g}), so its log-probabilities cannot be computed in chunks: train another model."
    )


def _forms(config: Any) -> list[tuple[float, float]]:
    """Return the scales and softcaps under the names of different architectures, the plain form first."""
    scales = [1.0]
    scales += [float(getattr(config, name)) for name in ("logit_scale", "lm_head_multiplier") if _given(config, name)]
    scales += [1 / float(config.logits_scaling)] if _given(config, "logits_scaling") else []
    caps = [0.0, *([float(config.final_logit_softcapping)] if _given(config, "final_logit_softcapping") else [])]
    return [(scale, softcap) for scale in scales for softcap in caps]


def _given(config: Any, name: str) -> bool:
    return bool(getattr(config, name, None))
