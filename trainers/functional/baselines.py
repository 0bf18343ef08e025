"""Baselines of an episode's return within its group, other than the group's mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.lazy import Tensor
from turngym.trainers.functional.groups import Singleton, group_statistics

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def leave_one_out_baselines(
    returns: Float[Tensor, "episode"], groups: Int[Tensor, "episode"], *, singleton: Singleton = "zero"
) -> Float[Tensor, "episode"]:
    """Return for each episode the mean return of the *other* episodes of its group (RLOO).

    Args:
        returns: One number an episode.
        groups: Group of each episode, dense.
        singleton: The only episode of a group is compared with itself (``zero``) or with 0 (``raw``).

    >>> from torch import tensor
    >>> leave_one_out_baselines(tensor([1.0, 1.0, 0.0]), tensor([0, 0, 0]))
    tensor([0.5000, 0.5000, 1.0000])
    """
    if len(returns) == 0:
        return returns
    mean, _, size = group_statistics(returns, groups, int(groups.max()) + 1, ddof=0)
    count = size[groups].to(returns.dtype)
    others = returns - (returns - mean[groups]) * count / (count - 1).clamp_min(1)
    return others.masked_fill(count == 1, 0.0) if singleton == "raw" else others


def length_weighted_baselines(
    returns: Float[Tensor, "episode"],
    lengths: Int[Tensor, "episode"] | Float[Tensor, "episode"],
    groups: Int[Tensor, "episode"],
    *,
    singleton: Singleton = "zero",
) -> Float[Tensor, "episode"]:
    """Return for each episode the mean return of its group, weighted by the episodes' numbers of tokens (OPO).

    Differences are taken from the smallest return, so that equal returns give exactly themselves. A group without any
    token gives its smallest return.

    Args:
        returns: One number an episode.
        lengths: Sampled tokens of each episode, or another weight.
        groups: Group of each episode, dense.
        singleton: The only episode of a group is compared with itself (``zero``) or with 0 (``raw``).

    >>> from torch import tensor
    >>> length_weighted_baselines(tensor([1.0, 1.0, 0.0]), tensor([2, 2, 6]), tensor([0, 0, 0]))
    tensor([0.4000, 0.4000, 0.4000])
    """
    if len(returns) == 0:
        return returns
    zeros = returns.new_zeros(int(groups.max()) + 1)
    smallest = zeros.scatter_reduce(0, groups, returns, "amin", include_self=False)
    tokens = lengths.to(returns.dtype)
    total = zeros.index_add(0, groups, tokens)
    above = zeros.index_add(0, groups, tokens * (returns - smallest[groups]))
    found = smallest + above / total.where(total > 0, 1)
    if singleton == "raw":
        found = found.masked_fill(groups.bincount(minlength=len(zeros)) == 1, 0.0)
    return found[groups]
