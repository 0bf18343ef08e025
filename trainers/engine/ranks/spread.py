"""How a model lies on the ranks, and what follows for the passes through it and for its gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from turngym.lazy import Tensor, nn, torch
from turngym.trainers.engine.ranks.base import SINGLE, Ranks
from turngym.trainers.engine.ranks.sharing_out import sequence_cost, shared_out


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
