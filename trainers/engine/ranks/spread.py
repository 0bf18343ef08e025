"""Distribution of a model over ranks, with its effect on passes and gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from turngym.lazy import Tensor, nn, torch
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.engine.ranks.base import SINGLE, Ranks
from turngym.trainers.engine.ranks.sharing_out import sequence_cost, shared_out

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class Spread(ABC):
    """Distribution of a model over ranks.

    Args:
        ranks: The ranks.
    """

    def __init__(self, ranks: Ranks = SINGLE) -> None:
        self.ranks = ranks

    def mine(self, chosen: Sequence[int], lengths: Sequence[int]) -> list[int]:
        """Return the sequences of this rank.

        Args:
            chosen: Indices of sequences.
            lengths: Length of every sequence of the batch in tokens.
        """
        if self.ranks.size == 1:
            return list(chosen)  # in the order that they are given
        shares = shared_out([sequence_cost(lengths[s]) for s in chosen], self.ranks.size)
        return [chosen[position] for position in shares[self.ranks.rank]]

    @abstractmethod
    def passes(self, own: int) -> int:
        """Return this rank's number of passes for ``own`` micro-batches; additional passes are dummies."""

    @abstractmethod
    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of parameters by their sums over ranks; None if no rank has one."""

    @abstractmethod
    def sum_probe(self, gradients: Sequence[Tensor]) -> None:
        """Replace gradients, one per parameter, by their sums over ranks."""

    def together(self, work: Callable[[], None]) -> None:
        """Do work with passes through networks on every rank.

        Raises:
            Exception: Exception raised here, or on the first failing rank.
        """
        self.ranks.agree(work)

    def placed(self, network: ModuleT, whole: Sequence[str] = ()) -> ModuleT:
        """Return the network to train for one that is equal on all ranks: sharded, or the network itself.

        Args:
            network: The network.
            whole: Names of small modules that are not sharded.
        """
        return network

    def release(self, network: nn.Module, target: nn.Module) -> None:  # noqa: B027
        """Free the memory of the weights written by :meth:`publish`, which must not be read until then."""

    def publish(self, network: nn.Module, target: nn.Module) -> None:  # noqa: B027
        """Copy the trained weights of a placed network into the original one."""

    def gradients(
        self, term: Tensor, of: Sequence[nn.Parameter], others: Sequence[nn.Parameter]
    ) -> Sequence[Tensor | None]:
        """Return the gradients of a scalar without freeing its graph; None for parameters it does not depend on.

        Args:
            term: The scalar.
            of: Parameters.
            others: Further parameters that it may depend on.
        """
        return torch.autograd.grad(term, list(of), retain_graph=True, allow_unused=True)

    def anchored(self, loss: Tensor, inputs: LossInputs) -> Tensor:
        """Return a loss whose backward pass takes part in the ranks' communication."""
        return loss


class Replicated(Spread):
    """Every rank holds the whole model; gradients are summed once per update."""

    def passes(self, own: int) -> int:
        """Return the rank's own number; passes do not communicate."""
        return own

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum gradients over ranks; missing ones count as 0."""
        if self.ranks.size == 1:
            return
        has = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
        self.ranks.sum([has])
        present = [parameter for parameter, count in zip(parameters, has.tolist(), strict=True) if count]
        self.ranks.sum([_gradient(parameter) for parameter in present])

    def sum_probe(self, gradients: Sequence[Tensor]) -> None:
        """Sum gradients over ranks."""
        self.ranks.sum(gradients)


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
