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
    """A way to spread a model over ranks.

    Args:
        ranks: The ranks.
    """

    def __init__(self, ranks: Ranks = SINGLE) -> None:
        self.ranks = ranks

    def mine(self, chosen: Sequence[int], lengths: Sequence[int]) -> list[int]:
        """Return the sequences of this rank.

        Args:
            chosen: Numbers of sequences.
            lengths: Tokens of every sequence of the batch.
        """
        if self.ranks.size == 1:
            return list(chosen)  # in the order that they are given
        shares = shared_out([sequence_cost(lengths[s]) for s in chosen], self.ranks.size)
        return [chosen[position] for position in shares[self.ranks.rank]]

    @abstractmethod
    def passes(self, own: int) -> int:
        """Return how many passes through a network this rank makes for ``own`` micro-batches; more are dummies."""

    @abstractmethod
    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace the gradients of parameters by their sums over ranks; one that no rank has stays None."""

    @abstractmethod
    def sum_probe(self, gradients: Sequence[Tensor]) -> None:
        """Replace gradients, one of each parameter, by their sums over ranks."""

    def together(self, work: Callable[[], None]) -> None:
        """Do work that makes passes through networks on every rank.

        Raises:
            Exception: Exception raised here, or on the first failing rank.
        """
        self.ranks.agree(work)

    def placed(self, network: ModuleT, whole: Sequence[str] = ()) -> ModuleT:
        """Return the network that is trained instead of one that is equal on all ranks: itself if each holds it.

        Args:
            network: The network.
            whole: Names of small modules in it that every rank keeps whole.
        """
        return network

    def release(self, network: nn.Module, target: nn.Module) -> None:  # noqa: B027
        """Free the memory of what :meth:`publish` writes to, which nothing may read until then."""

    def publish(self, network: nn.Module, target: nn.Module) -> None:  # noqa: B027
        """Copy the trained weights of a placed network into the one that it was made from."""

    def gradients(
        self, term: Tensor, of: Sequence[nn.Parameter], others: Sequence[nn.Parameter]
    ) -> Sequence[Tensor | None]:
        """Return the gradients of a number without freeing its graph; None where it does not depend on a parameter.

        Args:
            term: The number.
            of: Parameters.
            others: Further ones that it may depend on.
        """
        return torch.autograd.grad(term, list(of), retain_graph=True, allow_unused=True)

    def anchored(self, loss: Tensor, inputs: LossInputs) -> Tensor:
        """Return a loss whose backward pass takes part in what the ranks exchange there."""
        return loss


class Replicated(Spread):
    """Every rank holds the whole model, and gradients are summed once for each update."""

    def passes(self, own: int) -> int:
        """Return the rank's own number: nothing is exchanged in a pass."""
        return own

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sum gradients of ranks; those that a rank lacks are 0 there."""
        if self.ranks.size == 1:
            return
        has = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
        self.ranks.sum([has])
        present = [parameter for parameter, count in zip(parameters, has.tolist(), strict=True) if count]
        self.ranks.sum([_gradient(parameter) for parameter in present])

    def sum_probe(self, gradients: Sequence[Tensor]) -> None:
        """Sum them."""
        self.ranks.sum(gradients)


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
