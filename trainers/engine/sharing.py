"""Copies of networks that share their frozen weights."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import TypeVar

from torch import Tensor, nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def copy_sharing_frozen(module: ModuleT) -> ModuleT:
    """Return a deep copy that shares the frozen parameters of the original.

    With low-rank adapters only the adapters are copied; without, all parameters.
    """
    return copy.deepcopy(module, {id(parameter): parameter for parameter in frozen_parameters(module)})


def copy_sharing_all(module: ModuleT) -> ModuleT:
    """Return a copy of the module objects that shares all parameters and buffers of the original.

    >>> layer = nn.Linear(2, 2)
    >>> other = copy_sharing_all(layer).eval()
    >>> other.weight is layer.weight, layer.training
    (True, True)
    """
    return copy.deepcopy(module, {id(each): each for each in (*module.parameters(), *module.buffers())})


def frozen_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are not trained."""
    return [parameter for parameter in module.parameters() if not parameter.requires_grad]


def own_tensors(module: nn.Module, shared: Collection[nn.Parameter] = ()) -> dict[str, Tensor]:
    """Return the tensors of a module by name: its state, or only the unshared parameters if any is shared.

    Args:
        module: The module.
        shared: Parameters that belong to another module.
    """
    others = {id(parameter) for parameter in shared}
    if not any(id(parameter) in others for parameter in module.parameters()):
        return dict(module.state_dict())
    return {name: each.detach() for name, each in module.named_parameters() if id(each) not in others}


def distinct_tensors(
    modules: Sequence[tuple[str, nn.Module]], shared: Collection[nn.Parameter] = ()
) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each module by name, each storage once, for file formats without tied weights.

    Args:
        modules: Name and module.
        shared: Parameters to exclude.
    """
    seen: set[int] = set()
    found: dict[str, dict[str, Tensor]] = {}
    for name, module in modules:
        found[name] = {}
        for key, tensor in own_tensors(module, shared).items():
            if tensor.data_ptr() not in seen:
                seen.add(tensor.data_ptr())
                found[name][key] = tensor.contiguous()
    return found
