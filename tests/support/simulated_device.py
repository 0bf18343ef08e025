"""A simulated device: tensors on ``simulated:0`` compute on the CPU, and cannot be mixed with those of the CPU.

It is registered with torch as a backend, like any accelerator, so that code that mixes devices fails as it would on a
GPU: an operation on tensors of two devices raises, and synchronisations with the device are counted.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "simulated"
_WAITING = {"_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "unique_consecutive", "masked_select", "equal"}
"""Operators that synchronise: the host needs a value or a size from the device."""
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_MATH_ATTENTION = 0


class SimulatedTensor(torch.Tensor):
    """A tensor on the simulated device, whose numbers are those of a tensor of the host."""

    host: torch.Tensor

    @staticmethod
    def __new__(cls, host: torch.Tensor) -> SimulatedTensor:
        """Wrap a tensor of the host without a copy."""
        tensor: SimulatedTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=torch.device(NAME, 0),
        )
        tensor.host = host
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Compute an operator of tensors on this device."""
        return _compute(func, *args, **(kwargs or {}))

    def tolist(self) -> Any:
        """Return the numbers, which waits for the device."""
        WAITS["tolist"] += 1
        return self.host.tolist()

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return the memory of the numbers, for files."""
        return self.host.untyped_storage()

    def storage(self) -> Any:
        """Return the memory of the numbers, for files."""
        return self.host.storage()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        """Show the numbers without counting a synchronisation."""
        return f"SimulatedTensor({self.host})"


class _Module(_DummyBackendModule):
    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        """Return the types of mixed precision."""
        return [torch.bfloat16, torch.float16]

    @staticmethod
    def get_rng_state(_: Any = None) -> torch.Tensor:
        """Return the state of a generator that nothing draws from."""
        return torch.zeros(1, dtype=torch.uint8)

    @staticmethod
    def set_rng_state(*_: Any) -> None:
        """Leave the generator as it is."""


WAITS: Counter[str] = Counter()
"""Name of an operator -> how often the host waited for the device for it."""


@functools.cache
def device() -> torch.device:
    """Register the backend once in a process and return its device."""
    _setup_privateuseone_for_python_backend(NAME, _Module())
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(_compute, dispatch_key="PrivateUse1")
    own = torch.library.Library("aten", "IMPL")
    own.impl("_fused_sdp_choice", lambda *_, **__: _MATH_ATTENTION, "PrivateUse1")
    # torch.tensor(..., device=...) calls it where the fallback cannot be found.
    own.impl("_to_copy", functools.partial(_compute, torch.ops.aten._to_copy.default), "PrivateUse1")
    _KEPT.extend([everything, own])
    return torch.device(NAME, 0)


_KEPT: list[torch.library.Library] = []


@contextmanager
def waits() -> Iterator[Counter[str]]:
    """Count the synchronisations of a block, by operator."""
    before = WAITS.copy()
    found: Counter[str] = Counter()
    yield found
    found.update(WAITS - before)


def _is_simulated(place: Any) -> bool:
    return place is not None and torch.device(place).type == NAME


# Operators take and return nested lists and tuples alone; torch's own `tree_map` takes several times as long for them.
def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _on_host(value: Any) -> Any:
    if isinstance(value, SimulatedTensor):
        return value.host
    if isinstance(value, list | tuple):
        return type(value)(map(_on_host, value))
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value


def _wrapped(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_wrapped, value))
    is_bare = isinstance(value, torch.Tensor) and not isinstance(value, SimulatedTensor)
    return SimulatedTensor(value) if is_bare else value


def _compute(func: Any, *args: Any, **kwargs: Any) -> Any:
    name = func._schema.name.partition("::")[2]
    tensors = list(_tensors([args, *kwargs.values()]))
    place = kwargs.get("device")
    leaves = place is not None and not _is_simulated(place)
    if name == "copy_":
        leaves = not isinstance(args[0], SimulatedTensor)
    elif name != "_to_copy":
        _require_one_device(func, args, tensors)
    if name in _WAITING or leaves or (name in _INDEXING and _has_mask(args[1])):
        WAITS[name if not leaves else "to the host"] += 1
    found = func(*_on_host(args), **{name: _on_host(value) for name, value in kwargs.items()})
    returned = func._schema.returns
    if func._schema.is_mutable and len(returned) == 1 and returned[0].alias_info is not None:
        return _written(func, args, kwargs)
    return found if leaves else _wrapped(found)


def _has_mask(indices: Any) -> bool:
    return any(index is not None and index.dtype == torch.bool for index in indices)


def _require_one_device(func: Any, args: Any, tensors: list[torch.Tensor]) -> None:
    """Raise for tensors of two devices, but for what torch allows: numbers, and indices that lie on the host."""
    strangers = [each for each in tensors if not isinstance(each, SimulatedTensor) and each.dim()]
    allowed = func._schema.name.partition("::")[2] in _INDEXING and isinstance(args[0], SimulatedTensor)
    if strangers and not (allowed and all(any(each is index for index in args[1]) for each in strangers)):
        places = ", ".join(f"{tuple(each.shape)} on {each.device}" for each in tensors)
        raise RuntimeError(f"Expected all tensors to be on the same device: {func._schema.name} of {places}")


def _written(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the argument that an operator in place, or with ``out``, wrote."""
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return kwargs[argument.name] if argument.name in kwargs else args[number]
    raise AssertionError(f"{func._schema} writes nothing")
