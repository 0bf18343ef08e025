"""DMPO: the likelihoods of a group's episodes are drawn towards a Boltzmann distribution of returns (2605.19461).

A modifier (arXiv 2605.19461, second-hand). A policy gradient makes the likeliest of several good answers ever likelier;
here episodes with equal returns are to be equally likely in the group, so that several of them stay alive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class DMPOConfig:
    """Settings of distribution matching."""

    coef: float = 2.0
    """Weight of the mean squared difference of the two distributions."""
    temperature: float = 1 / 15
    """Divisor of the returns in the distribution to be matched."""

    def __post_init__(self) -> None:
        within("coef", self.coef, 0)
        within("temperature", self.temperature, 1e-9)


def matching_slopes(logprobs: Tensor, returns: Tensor, temperature: float) -> Tensor:
    """Return the derivative of mean((p - q)^2) by each log-probability l: p = softmax(R / T), q = softmax(l).

    Args:
        logprobs: Mean log-probability of each episode of a group.
        returns: Return of each one.
        temperature: T.

    >>> matching_slopes(torch.tensor([-0.5, -0.7, -0.6]), torch.tensor([1.0, 0.0, 0.0]), 1 / 15)
    tensor([-0.1472,  0.0666,  0.0806])
    """
    target, found = torch.softmax(returns / temperature, 0), torch.softmax(logprobs, 0)
    pull = (found - target) * found
    return 2 / len(found) * (pull - found * pull.sum())


@ALGORITHMS.register("dmpo")
class DMPO(Modifier[DMPOConfig]):
    """Matching of likelihoods to returns within groups, on another method."""

    Config: ClassVar[type[DMPOConfig]] = DMPOConfig
    needs_advantages: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the log-probabilities before the first update, and what the base needs."""
        return super().needs | {Need.GROUPS, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and to each token the pull of the matching on its episode."""
        credit, groups, returns = super().credit(table), table.episode_group, table.episode_return()
        logprobs, tokens = table.token_mean(table.token_old_logprob).to(returns), table.episode_sum(table.num_tokens)
        pull, sizes = torch.zeros_like(returns), []
        for group in groups.unique():
            members = torch.nonzero((groups == group) & (tokens > 0)).flatten()
            if len(members) > 1:
                slopes = matching_slopes(logprobs[members], returns[members], self.config.temperature)
                pull[members] = -self.config.coef * len(members) * slopes
                sizes.append(float(slopes.abs().sum()))
        found = table.to_tokens(pull[table.episode]).to(credit.advantages)
        alone = float((torch.bincount(groups) == 1).sum())
        metrics = {"dmpo_slope": sum(sizes) / max(len(sizes), 1), "groups_shrunk_to_one": alone}
        return replace(credit, advantages=credit.advantages + found, metrics={**metrics, **credit.metrics})
