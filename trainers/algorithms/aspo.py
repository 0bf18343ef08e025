"""ASPO: good tokens are weighted by the inverse of their ratio, so that unlikely ones are learnt faster (2510.06062).

A modifier: asymmetric importance sampling policy optimisation (arXiv 2510.06062). The ratio of a good token that has
become likelier grows, and so does its weight: what is learnt already is learnt most. Its inverse has the opposite
effect. Tokens of high entropy in their turn have a wider clip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import Surrogate, required, sampled, within
from turngym.trainers.algorithms.base.policy_loss import PolicyLoss
from turngym.trainers.core.algorithm import LossInputs, Need


@dataclass(frozen=True)
class ASPOConfig:
    """Settings of asymmetric importance sampling."""

    narrow: float = 0.2
    """Width of the clip for tokens of low entropy."""
    wide: float = 0.4
    """Width of the clip for the others."""
    quantile: float = 0.8
    """Quantile of the entropies of a turn up to which they are low."""
    cap: float = 3.0
    """Largest weight; beyond it a token has this weight and the gradient of its log-probability."""

    def __post_init__(self) -> None:
        within("narrow", self.narrow, 0, 1)
        within("wide", self.wide, 0, 1)
        within("quantile", self.quantile, 0, 1)
        within("cap", self.cap, 1)


def low_entropies(entropy: Tensor, turn_ids: Tensor, quantile: float) -> Tensor:
    """Return which tokens have an entropy up to a quantile of their turn's, interpolated linearly.

    Args:
        entropy: Entropy at each token, ``[batch, token]``.
        turn_ids: Turn of each sampled token, -1 elsewhere; those are not low.
        quantile: Quantile, from 0 to 1.

    >>> low_entropies(torch.tensor([[0.1, 0.5, 0.3, 0.2]]), torch.tensor([[0, 0, 0, 1]]), 0.8)
    tensor([[ True, False,  True,  True]])
    """
    flat, ids = entropy.flatten(), turn_ids.flatten()
    order = torch.where(ids >= 0, flat, 0.0).argsort(stable=True)
    order = order[ids[order].argsort(stable=True)]
    ordered, turns = flat[order], ids[order]
    place = torch.arange(len(ids), device=ids.device)
    is_first = torch.ones_like(turns, dtype=torch.bool)
    is_first[1:] = turns[1:] != turns[:-1]
    start = torch.where(is_first, place, 0).cummax(0).values
    number = is_first.cumsum(0) - 1
    length = torch.zeros_like(place).index_add(0, number, torch.ones_like(place))[number]
    rank = quantile * (length - 1).to(flat.dtype)
    below = rank.floor().long()
    least, next_one = ordered[start + below], ordered[start + torch.minimum(below + 1, length - 1)]
    limit = least + (rank - below) * (next_one - least)
    low = torch.zeros_like(ids, dtype=torch.bool)
    low[order] = (ordered <= limit) & (turns >= 0)
    return low.view_as(turn_ids)


@ALGORITHMS.register("aspo")
class ASPO(PolicyLoss[ASPOConfig]):
    """Inverse ratios for good tokens, on another method."""

    Config: ClassVar[type[ASPOConfig]] = ASPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """The entropy, and what the base needs."""
        return super().needs | {Need.ENTROPY}

    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return the surrogate with the asymmetric weight of each token."""
        entropy = required(inputs.entropy, "entropy").detach()
        low = low_entropies(entropy, inputs.turn_ids, self.config.quantile)
        return found._replace(policy=self.weighted(found.ratio, inputs, low))

    def weighted(self, ratio: Tensor, inputs: LossInputs, low: Tensor) -> F.ClippedSurrogate:
        """Return the loss, given which tokens have a low entropy."""
        advantages, cap = inputs.advantages, self.config.cap
        width = torch.where(low, self.config.narrow, self.config.wide).to(ratio)
        good = advantages >= 0
        held = torch.where(good, torch.minimum(ratio, 1 + width), torch.maximum(ratio, 1 - width))
        fixed = held.detach()
        weight = torch.where(good, held / fixed**2, held)
        beyond = torch.where(good, 1 / fixed, fixed) > cap
        score = -advantages * sampled(inputs.logprobs, inputs)
        clipped = (held != ratio) & (advantages != 0) & inputs.action_mask
        loss = torch.where(beyond, cap * score, -advantages * weight)
        unclipped = -advantages * torch.where(good, ratio / ratio.detach() ** 2, ratio)
        return F.ClippedSurrogate(loss, unclipped, clipped, beyond & (advantages != 0) & inputs.action_mask)
