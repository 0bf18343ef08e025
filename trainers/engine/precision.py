"""Float32 master weights of 16-bit weights, and loss scaling for float16.

The network holds 16-bit weights, so forward pass, backward pass and sampling are fast and use the same policy. The
optimiser updates float32 copies of the trained weights, because small updates of 16-bit weights are lost to rounding.
Gradients of micro-batches are also accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from turngym.trainers.engine.ranks.sharding import by_kind

_SHORT = (torch.bfloat16, torch.float16)


class Masters:
    """Float32 copies of 16-bit trained parameters; other parameters are their own masters.

    Args:
        parameters: The trained parameters.
        on_host: Copy every parameter to CPU memory, with its gradients and optimiser state.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], on_host: bool = False) -> None:
        self._of: dict[int, nn.Parameter] = {}
        self._copied: list[nn.Parameter] = []
        for parameter in parameters:
            if not on_host and parameter.dtype not in _SHORT:
                continue
            device = torch.device("cpu") if on_host else parameter.device
            dtype = torch.promote_types(parameter.dtype, torch.float32)
            self._of[id(parameter)] = nn.Parameter(parameter.detach().to(device, dtype, copy=True))
            self._copied.append(parameter)

    def of(self, parameter: nn.Parameter) -> nn.Parameter:
        """Return the master of a parameter, or the parameter itself."""
        return self._of.get(id(parameter), parameter)

    def within(self, module: nn.Module) -> dict[str, nn.Parameter]:
        """Return the masters of a module's parameters by name; tied parameters appear under all their names."""
        named = module.named_parameters(remove_duplicate=False)
        return {name: self._of[id(parameter)] for name, parameter in named if id(parameter) in self._of}

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Accumulate gradients on the masters, in float32, as soon as a backward pass has computed them."""
        handles = [parameter.register_post_accumulate_grad_hook(self._collect) for parameter in self._copied]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _collect(self, parameter: Tensor) -> None:
        master, gradient = self._of[id(parameter)], parameter.grad
        if gradient is not None:
            if master.grad is None:
                master.grad = gradient.to(master, copy=True)
            else:
                master.grad += gradient.to(master)
            parameter.grad = None

    @torch.no_grad()
    def publish(self) -> None:
        """Copy the masters into the network."""
        copied: list[Tensor] = [*self._copied]
        if copied:
            torch._foreach_copy_(copied, [self._of[id(parameter)] for parameter in self._copied])

    @torch.no_grad()
    def load(self, module: nn.Module, saved: Mapping[str, Tensor]) -> None:
        """Load the exact weights of a module whose parameters were loaded from the same tensors."""
        for name, master in self.within(module).items():
            if name in saved:
                master.copy_(saved[name])


class LossScale:
    """Loss scale against vanishing gradients in float16; 1 in other formats.

    It is halved after an update with overflowing gradients, which is skipped, and doubled after ``patience`` others.

    Args:
        is_needed: True if the network computes in float16.
        patience: Consecutive updates without overflow before it is doubled.
    """

    def __init__(self, is_needed: bool, patience: int = 200) -> None:
        self.is_needed = is_needed
        self.patience = patience
        self.value = 65_536.0 if is_needed else 1.0
        self.good = 0
        """Consecutive updates without overflow."""

    def unscale(self, parameters: Iterable[nn.Parameter]) -> None:
        """Divide gradients by it."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for kind in by_kind(gradients) if self.is_needed else []:
            torch._foreach_mul_(kind, 1.0 / self.value)

    def skips(self, is_finite: bool) -> bool:
        """Adapt to an update; return True if it overflowed and must be skipped."""
        if not self.is_needed:
            return False
        if not is_finite and self.value > 1.0:
            self.value, self.good = max(self.value / 2.0, 1.0), 0
            return True
        self.good += is_finite
        if self.good >= self.patience:
            self.value, self.good = self.value * 2.0, 0
        return False
