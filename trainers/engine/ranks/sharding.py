"""Sharding of a network's weights, gradients and optimiser state over ranks (FSDP2).

Each layer is a separate group; all other weights belong to the root. The weights of a group are gathered for its
computation and freed afterwards, in both forward and backward pass. All ranks must run the same passes.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from turngym.errors import ConfigError
from turngym.trainers.engine.head import same_head
from turngym.trainers.engine.layouts.check import same_layouts
from turngym.trainers.engine.ranks.base import Ranks

ModuleT = TypeVar("ModuleT", bound=nn.Module)
TensorT = TypeVar("TensorT", bound=Tensor)
P = ParamSpec("P")
T = TypeVar("T")
_SHORT = (torch.bfloat16, torch.float16)
_METHOD = "_turngym_inside"


def device_mesh(device: torch.device, ranks: Ranks, group: int = 0) -> DeviceMesh:
    """Return the device mesh of the ranks: one dimension, or groups with replicas of each other.

    Weights are sharded over the ranks of each group, and gradients are summed over groups (HSDP), so no weights are
    sent between groups.

    Args:
        device: The device of the weights.
        ranks: The ranks; all take part.
        group: Number of ranks per group; 0 for those of a machine, or for all if machines have one or unequal numbers.
    """
    size = ranks.size
    if not group:
        sizes = set(ranks.gathered(int(os.environ.get("LOCAL_WORLD_SIZE", size))))
        group = sizes.pop() if len(sizes) == 1 else size
    if group in (1, size) or size % group:
        return init_device_mesh(device.type, (size,))
    return init_device_mesh(device.type, (size // group, group), mesh_dim_names=("replicate", "shard"))


def sharded_copy(network: ModuleT, mesh: DeviceMesh, whole: Sequence[str] = ()) -> ModuleT:
    """Return a sharded copy of a network, which shares no weights with it.

    Trained 16-bit weights are stored in float32. The copy computes in 16 bits, and gradients are summed over ranks in
    float32. No rank ever holds the whole copy.

    Args:
        network: Network with equal weights on all ranks.
        mesh: The ranks.
        whole: Names of modules that are not sharded.

    Raises:
        ConfigError: The network has no layers, or its weights are quantized.
    """
    if any(not parameter.is_floating_point() for parameter in network.parameters()):
        raise ConfigError("quantized weights cannot be sharded: pass --update.sharding none, or --quantize none.")
    found = copy.deepcopy(network, {id(parameter): _without_storage(parameter) for parameter in network.parameters()})
    layers = [each for each in found.modules() if isinstance(each, GradientCheckpointingLayer)]
    if not layers:
        raise ConfigError(f"a {type(network).__name__} has no layers to shard: pass --update.sharding none.")
    policy = _precision(network, whole)
    kept = {parameter for name in whole for parameter in found.get_submodule(name).parameters()}
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    root: Any = fully_shard(found, mesh=mesh, mp_policy=policy, reshard_after_forward=True, ignored_params=kept)
    device = next(network.parameters()).device
    root._apply(lambda tensor: torch.empty_like(tensor, device=device) if tensor.is_meta else tensor)
    fill(found, network)
    same_head(found, network)
    same_layouts(found, network)
    for module in found.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # each rank has its terms of the sum
            module.set_force_sum_reduction_for_comms(True)  # the only way to avoid division with gloo
    setattr(found, _METHOD, MethodType(_call, found))
    register_fsdp_forward_method(found, _METHOD)
    return found


def _without_storage(parameter: nn.Parameter) -> nn.Parameter:
    """Return a parameter of that shape on the meta device, in float32 if it is trained in 16 bits."""
    dtype = torch.float32 if parameter.requires_grad and parameter.dtype in _SHORT else parameter.dtype
    return nn.Parameter(torch.empty_like(parameter, dtype=dtype, device="meta"), parameter.requires_grad)


def _precision(network: nn.Module, whole: Sequence[str]) -> MixedPrecisionPolicy:
    """Return the precision policy of a network: computation in 16 bits if its trained weights have 16 bits."""
    kept = {id(parameter) for name in whole for parameter in network.get_submodule(name).parameters()}
    trained = {p.dtype for p in network.parameters() if p.requires_grad and id(p) not in kept}
    short = trained.intersection(_SHORT)
    compute = short.pop() if len(trained) == 1 and short else None  # adapters compute in their own data type
    return MixedPrecisionPolicy(compute, torch.float64 if torch.float64 in trained else torch.float32)


def _call(network: nn.Module, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    return function(network, *args, **kwargs)


def is_sharded(network: nn.Module) -> bool:
    """Return True if a network is sharded."""
    return isinstance(network, FSDPModule)


def is_part(tensor: Tensor) -> bool:
    """Return True if a tensor is sharded."""
    return isinstance(tensor, DTensor)


def by_kind(tensors: Sequence[TensorT]) -> list[list[TensorT]]:
    """Return sharded and other tensors separately, because operations cannot mix them."""
    found: dict[bool, list[TensorT]] = {}
    for tensor in tensors:
        found.setdefault(is_part(tensor), []).append(tensor)
    return list(found.values())


def inside(network: ModuleT, function: Callable[Concatenate[ModuleT, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with a network whose root weights are gathered meanwhile, and layers' weights as they compute.

    Required for reading weights outside the forward pass, such as a custom head. Other networks are passed unchanged.
    """
    if not is_sharded(network):
        return function(network, *args, **kwargs)
    method: Callable[..., T] = getattr(network, _METHOD)
    return method(function, *args, **kwargs)


@torch.no_grad()
def fill(network: nn.Module, source: nn.Module) -> None:
    """Copy the weights of a whole network into a sharded one, without communication."""
    given = dict(source.named_parameters())
    for name, parameter in network.named_parameters():
        assign(parameter, given[name])


@torch.no_grad()
def assign(tensor: Tensor, whole: Tensor) -> None:
    """Copy a whole tensor into a tensor, for a sharded one this rank's part."""
    if isinstance(tensor, DTensor):
        part = distribute_tensor(whole.to(tensor.device), tensor.device_mesh, tensor.placements, src_data_rank=None)
        tensor.to_local().copy_(part.to_local())
    else:
        tensor.copy_(whole)


def release(network: nn.Module, target: nn.Module) -> None:
    """Free the memory of the weights written by :func:`publish`; reading them before that is an error."""
    given = dict(target.named_parameters())
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            given[name].data = given[name].data.new_empty(0)


@torch.no_grad()
def publish(network: nn.Module, target: nn.Module) -> None:
    """Gather the trained weights of a sharded network, one at a time, into a whole one on every rank."""
    given = dict(target.named_parameters())
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            whole, own = gathered(parameter), given[name]
            if own.shape != whole.shape:  # released
                own.data = own.data.new_empty(whole.shape)
            own.copy_(whole)


def gathered(tensor: Tensor) -> Tensor:
    """Return the whole tensor of a sharded one, on every rank; other tensors are returned unchanged."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@contextmanager
def _gradients_apart(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Context without gradients of parameters, which are restored afterwards."""
    kept = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, kept, strict=True):
            parameter.grad = gradient


def gradients_by_backward(
    term: Tensor, of: Sequence[nn.Parameter], others: Sequence[nn.Parameter]
) -> list[Tensor | None]:
    """Return gradients of a scalar, like ``torch.autograd.grad`` without freeing the graph.

    ``torch.autograd.grad`` returns None for sharded weights.

    Args:
        term: The scalar.
        of: Parameters.
        others: Further parameters that it depends on, without gradients.
    """
    with _gradients_apart([*of, *others]):
        term.backward(retain_graph=True)
        return [parameter.grad for parameter in of]
