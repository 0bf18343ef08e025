"""TRPA: levels of preference instead of rewards, compared pair by pair in the group (arXiv 2504.04524).

Trust region preference approximation. Right beats wrong, wrong beats unfinished, unfinished beats malformed; the policy
learns each pair of a group as DPO does, with its likelihood against the reference. How much better one is does not
matter, so that no reward has to be weighed against another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable

RIGHT, WRONG, UNFINISHED, MALFORMED = 1, 2, 3, 4


@dataclass(frozen=True)
class TRPAConfig(OutcomeConfig):
    """Settings of trust region preference approximation."""

    normalisation: Normalisation = "trajectory"
    """Over what the policy loss is averaged: the tokens of an episode, then the episodes."""
    beta: float = 0.1
    """Weight of the difference of log-likelihoods in a comparison."""
    best: float = 2.5
    """Factor of the comparisons that a right episode wins."""
    threshold: float = 1.0
    """Smallest return of a right episode."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("beta", self.beta, 0)
        within("best", self.best, 0)


class Comparisons(NamedTuple):
    """Result of comparing episodes.

    Args:
        slopes: Derivative of the loss by each episode's mean log-probability.
        loss: Mean over pairs of minus the log of the probability of the right order; 0 without a pair.
        pairs: Number of pairs.
    """

    slopes: Tensor
    loss: Tensor
    pairs: int


def compared(margins: Tensor, levels: Tensor, groups: Tensor, *, beta: float, best: float) -> Comparisons:
    """Compare every two episodes of a group that have different levels.

    Args:
        margins: Mean log-probability of each episode, less that under the reference.
        levels: Level of each episode; small ones are better.
        groups: Group of each episode.
        beta: Weight of the difference of margins.
        best: Its factor where the better one has level 1.

    >>> found = compared(torch.tensor([0.2, -0.1, 0.3]), torch.tensor([1, 2, 4]), torch.zeros(3), beta=0.1, best=2.5)
    >>> found.loss, found.pairs
    (tensor(0.6918), 3)
    """
    wins = (groups[:, None] == groups) & (levels[:, None] < levels)
    scale = beta * torch.where(levels == RIGHT, best, 1.0).to(margins)[:, None]
    advantage = scale * (margins[:, None] - margins)
    count = int(wins.sum())
    pull = torch.where(wins, scale * torch.sigmoid(-advantage), 0.0) / max(count, 1)
    loss = torch.where(wins, torch.nn.functional.softplus(-advantage), 0.0).sum() / max(count, 1)
    return Comparisons(pull.sum(0) - pull.sum(1), loss, count)


def levels_of(table: TurnTable, threshold: float) -> Tensor:
    """Return the level of each episode: right, wrong, cut off, or with an invalid action."""
    levels = torch.full((table.num_episodes,), WRONG)
    levels[table.episode[table.truncated]] = UNFINISHED
    levels[table.episode[~table.is_valid]] = MALFORMED
    levels[table.episode_return() >= threshold] = RIGHT
    return levels


@ALGORITHMS.register("trpa")
class TRPA(OutcomeMethod[TRPAConfig]):
    """Preference learning between the episodes of a group by levels."""

    Config: ClassVar[type[TRPAConfig]] = TRPAConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, a reference policy, the log-probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.REFERENCE_LOGPROBS, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the pull of its episode's comparisons, so that the mean over episodes is that over pairs.

        Raises:
            ConfigError: The table has no log-probabilities of a reference policy.
        """
        config, reference = self.config, table.token_reference_logprob
        if reference is None:
            raise ConfigError("the turn table has no 'token_reference_logprob': fill it with those of a reference.")
        levels = levels_of(table, config.threshold)
        margins = table.token_mean(table.token_old_logprob - reference).to(table.reward)
        found = compared(margins, levels, table.episode_group, beta=config.beta, best=config.best)
        credit = group_credit(table, (-len(levels) * found.slopes)[table.episode], config)
        metrics = {"trpa_pairs": float(found.pairs), "trpa_loss": float(found.loss)}
        return replace(credit, metrics={**credit.metrics, **metrics})
