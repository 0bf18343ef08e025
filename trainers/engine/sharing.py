"""Copies of networks that share their frozen weights."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor, nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def copy_sharing_frozen(module: ModuleT) -> ModuleT:
    """Return a deep copy whose frozen parameters are those of the original, not copies of them.

    With low-rank adapters only the adapters are copied; with full training, everything.
    """
    return copy.deepcopy(module, {id(p): p for p in module.parameters() if not p.requires_grad})


def distinct_tensors(modules: Sequence[tuple[str, nn.Module]]) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each module by name, each storage only once, for file formats without tied weights."""
    seen: set[int] = set()
    found: dict[str, dict[str, Tensor]] = {}
    for name, module in modules:
        found[name] = {}
        for key, tensor in module.state_dict().items():
            if tensor.data_ptr() not in seen:
                seen.add(tensor.data_ptr())
                found[name][key] = tensor.contiguous()
    return found
