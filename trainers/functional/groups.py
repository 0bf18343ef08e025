"""Statistics within groups: baselines for methods without a critic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Singleton: TypeAlias = Literal["zero", "raw"]
"""Advantage of the only member of a group: ``zero``, or ``raw`` (its own score, as verl and verl-agent do)."""


class GroupStatistics(NamedTuple):
    """Mean, standard deviation and size of each group; a standard deviation that does not exist is 0."""

    mean: Float[Tensor, "group"]
    std: Float[Tensor, "group"]
    size: Int[Tensor, "group"]


def group_statistics(
    scores: Float[Tensor, "item"], groups: Int[Tensor, "item"], num_groups: int, *, ddof: int
) -> GroupStatistics:
    """Return the statistics of the scores of each group.

    Sums run over differences from the smallest member, so that equal scores have exactly their own value as mean and
    exactly 0 as standard deviation, whatever their rounding.

    Args:
        scores: One number an item.
        groups: Group of each item, in ``0 .. num_groups - 1``.
        num_groups: Number of groups; groups without an item get 0 everywhere.
        ddof: 1 for the sample standard deviation, 0 for that of the population.

    >>> group_statistics(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1]), 2, ddof=1).mean
    tensor([2., 5.])
    """
    zeros = scores.new_zeros(num_groups)
    count = torch.bincount(groups, minlength=num_groups)
    smallest = zeros.scatter_reduce(0, groups, scores, "amin", include_self=False)
    above = scores - smallest[groups]
    mean_above = zeros.index_add(0, groups, above) / count.clamp_min(1)
    squares = zeros.index_add(0, groups, (above - mean_above[groups]) ** 2)
    std = (squares / (count - ddof).clamp_min(1)).sqrt()
    return GroupStatistics(smallest + mean_above, std, count)


def group_advantages(
    scores: Float[Tensor, "item"],
    groups: Int[Tensor, "item"],
    counted: Bool[Tensor, "item"] | None = None,
    *,
    scale_by_std: bool,
    ddof: int = 1,
    epsilon: float = 1e-6,
    singleton: Singleton = "zero",
) -> Float[Tensor, "item"]:
    """Return each score minus its group's mean, optionally divided by the group's standard deviation plus ``epsilon``.

    A group whose standard deviation does not exceed ``epsilon`` is centred and not scaled: an item outside of the
    statistics would otherwise be divided by almost 0.

    Args:
        scores: One number an item.
        groups: Group of each item, dense.
        counted: Mask of items in the statistics; None for all. Every group must have one.
        scale_by_std: Whether to divide.
        ddof: 1 for the sample standard deviation, 0 for that of the population.
        epsilon: Added to the standard deviation.
        singleton: Advantage of a group with one item.

    >>> group_advantages(torch.tensor([1.0, 0.0, 0.0, 1.0]), torch.zeros(4, dtype=torch.long), scale_by_std=False)
    tensor([ 0.5000, -0.5000, -0.5000,  0.5000])
    """
    if len(scores) == 0:
        return scores
    entering = torch.ones_like(groups, dtype=torch.bool) if counted is None else counted
    mean, std, size = group_statistics(scores[entering], groups[entering], int(groups.max()) + 1, ddof=ddof)
    alone = size == 1
    if singleton == "raw":
        mean, std = mean.masked_fill(alone, 0.0), std.masked_fill(alone, 1.0)
    centred = scores - mean[groups]
    if scale_by_std:
        centred = centred / torch.where(std > epsilon, std + epsilon, torch.ones_like(std))[groups]
    return centred.masked_fill(alone[groups], 0.0) if singleton == "zero" else centred
