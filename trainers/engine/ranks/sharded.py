"""Sharded models (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from turngym.errors import DivergenceError
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.engine.ranks.base import Ranks
from turngym.trainers.engine.ranks.sharding import (
    device_mesh,
    gradients_by_backward,
    publish,
    release,
    sharded_copy,
)
from turngym.trainers.engine.ranks.spread import ModuleT, Replicated


class Sharded(Replicated):
    """Weights, gradients and optimiser state are sharded over ranks; small networks of a method are replicated.

    Every pass gathers weights, so all ranks must make the same number of passes.

    Args:
        ranks: The ranks.
        group: Number of ranks per copy, a divisor of the number of ranks; 0 for those of a machine.
    """

    def __init__(self, ranks: Ranks, group: int = 0) -> None:
        super().__init__(ranks)
        self._group = group
        self._mesh: DeviceMesh | None = None

    def passes(self, own: int) -> int:
        """Return the maximum over ranks."""
        return int(self.ranks.maximum(own))

    def together(self, work: Callable[[], None]) -> None:
        """Do the work; only errors of non-finite numbers, which do not interrupt a pass, are passed to other ranks.

        After any other error, they wait in a pass for this rank until the launcher ends them.
        """
        failure: list[DivergenceError] = []
        try:
            work()
        except DivergenceError as error:
            failure.append(error)

        def outcome() -> None:
            if failure:
                raise failure[0]

        self.ranks.exchange(outcome)

    def placed(self, network: ModuleT, whole: Sequence[str] = ()) -> ModuleT:
        """Return a sharded copy of a network."""
        if self._mesh is None:
            self._mesh = device_mesh(next(network.parameters()).device, self.ranks, self._group)
        return sharded_copy(network, self._mesh, whole)

    def release(self, network: nn.Module, target: nn.Module) -> None:
        """Free the trained weights of the whole network."""
        release(network, target)

    def publish(self, network: nn.Module, target: nn.Module) -> None:
        """Gather the trained weights of a sharded network into the original whole one."""
        publish(network, target)

    def gradients(
        self, term: Tensor, of: Sequence[nn.Parameter], others: Sequence[nn.Parameter]
    ) -> Sequence[Tensor | None]:
        """Return the gradients of a number without freeing its graph; those of sharded weights are sums over ranks."""
        return gradients_by_backward(term, of, others)

    def anchored(self, loss: Tensor, inputs: LossInputs) -> Tensor:
        """Return a loss that depends on all networks, because other ranks wait for the gradients of each."""
        outputs = [each for each in (inputs.logprobs, inputs.values) if each is not None]
        return loss + torch.stack([each[:0].sum() for each in outputs]).sum()

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum the gradients of replicated weights; those of sharded weights are already summed."""
        super().sum_gradients([parameter for parameter in parameters if not isinstance(parameter, DTensor)])

    def sum_probe(self, gradients: Sequence[Tensor]) -> None:
        """Sum the gradients of replicated weights."""
        super().sum_probe([gradient for gradient in gradients if not isinstance(gradient, DTensor)])
