"""Clip-Cov: a few tokens with a high covariance of log-probability and advantage lose their gradient (2505.22617).

A modifier (The Entropy Mechanism, arXiv 2505.22617). The change of entropy in a step is about minus that covariance:
likely tokens with a high advantage take most of it. A few of them, drawn from those in a range, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class ClipCovConfig:
    """Settings of Clip-Cov."""

    share: float = 0.0002
    """Share of the batch's tokens that lose their gradient, at least one token; 0 for none."""
    low: float = 1.0
    """Covariance above which a token may be drawn."""
    high: float = 5.0
    """Covariance below which it may be drawn."""

    def __post_init__(self) -> None:
        within("share", self.share, 0, 1)
        if not self.low < self.high:
            raise ConfigError(f"low must be less than high={self.high:g}, got {self.low:g}.")


def covariances(logprobs: Tensor, advantages: Tensor, counted: Tensor) -> Tensor:
    """Return each token's product of both deviations from the mean over the batch.

    Args:
        logprobs: Log-probability of each token, one dimension.
        advantages: Advantage of each token.
        counted: Mask of the tokens that the means are taken over.

    >>> covariances(torch.tensor([-1.0, -3.0]), torch.tensor([2.0, 0.0]), torch.tensor([True, True]))
    tensor([1., 1.])
    """
    if not counted.any():
        return torch.zeros_like(logprobs)
    return (advantages - advantages[counted].mean()) * (logprobs - logprobs[counted].mean())


def in_loss(table: TurnTable, credit: Credit) -> Tensor:
    """Return which sampled tokens enter the loss."""
    masked = torch.zeros(len(table.token_turn), dtype=torch.bool) if credit.masked is None else credit.masked
    return ~(masked | table.to_tokens(table.masked)) if len(table.masked) else ~masked


def drawn_order(table: TurnTable, iteration: int) -> Tensor:
    """Return a random number for each sampled token, which depends on where it was sampled and on nothing else."""
    index = torch.arange(len(table.token_turn))
    place = index - (torch.cumsum(table.num_tokens, 0) - table.num_tokens)[table.token_turn]
    episode = table.episode_number[table.episode] if len(table.episode_number) else table.episode
    key = torch.full_like(index, iteration)
    for part in (table.to_tokens(episode), table.to_tokens(table.turn), place):
        key = ((key + part + 1) * 2_654_435_761) % 2**31
        key = key ^ (key >> 15)
    return key


@ALGORITHMS.register("clip_cov")
class ClipCov(Modifier[ClipCovConfig]):
    """No gradient for a few tokens of high covariance, on another method."""

    Config: ClassVar[type[ClipCovConfig]] = ClipCovConfig
    needs_advantages: ClassVar[bool] = True
    _iteration = 0

    @property
    def needs(self) -> frozenset[Need]:
        """The log-probabilities before the first update, and what the base needs."""
        return super().needs | {Need.OLD_LOGPROBS}

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the iteration, for the random numbers."""
        super().begin_iteration(iteration, num_iterations)
        self._iteration = iteration

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and none to the tokens that are drawn."""
        credit, config = super().credit(table), self.config
        counted = in_loss(table, credit)
        found = covariances(table.token_old_logprob, credit.advantages, counted)
        candidates = torch.nonzero(counted & (found > config.low) & (found < config.high)).flatten()
        count = max(int(config.share * int(counted.sum())), 1) if config.share else 0
        drawn = candidates[drawn_order(table, self._iteration)[candidates].argsort(stable=True)[:count]]
        advantages = credit.advantages.clone()
        advantages[drawn] = 0.0
        metrics = {"clip_cov_candidates": float(len(candidates)), "clip_cov_dropped": float(len(drawn))}
        return replace(credit, advantages=advantages, metrics={**credit.metrics, **metrics})
