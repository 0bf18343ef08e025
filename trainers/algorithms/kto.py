"""KTO: Kahneman-Tversky optimisation of single episodes that are desirable or not (Ethayarajh et al. 2024).

arXiv 2402.01306. No pairs: an episode is pushed up or down by itself, the less the further it already is beyond the
mean distance of the policy from its reference. Episodes come from the policy itself in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import ClippedConfig, ClippedMethod, one_of, within
from turngym.trainers.algorithms.dpo import episode_likelihoods
from turngym.trainers.core.algorithm import Credit, Need, Normalisation
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class KTOConfig(ClippedConfig):
    """Settings of Kahneman-Tversky optimisation."""

    normalisation: Normalisation = "trajectory_sum"
    """What the log-likelihood of an episode is: the sum over its tokens, or with ``trajectory`` their mean."""
    beta: float = 0.1
    """Weight of log-likelihoods: the larger, the sooner an episode has moved far enough."""
    threshold: float = 1.0
    """Smallest return of a desirable episode."""
    desirable: float = 1.0
    """Weight of desirable episodes."""
    undesirable: float = 1.0
    """Weight of the others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("normalisation", self.normalisation, ("trajectory_sum", "trajectory"))
        within("beta", self.beta, 1e-13)
        within("desirable", self.desirable, 0)
        within("undesirable", self.undesirable, 0)


class Values(NamedTuple):
    """Result of valuing episodes.

    Args:
        slopes: [episodes] Derivative of the loss by each episode's log-likelihood; the anchor is a constant.
        loss: Mean over episodes of their weight times one minus the sigmoid of their value.
        anchor: Mean of the log-likelihoods, at least 0: the KL divergence that values are counted from.
    """

    slopes: Tensor
    loss: Tensor
    anchor: Tensor


def values_of(likelihoods: Tensor, is_desirable: Tensor, config: KTOConfig) -> Values:
    """Value each episode by how far it is above the anchor, or below it if it is undesirable.

    Args:
        likelihoods: [episodes] Log-likelihood of each, less that under the reference.
        is_desirable: [episodes] Which are desirable.
        config: Beta and the two weights.

    >>> found = values_of(torch.tensor([1.0, -0.5]), torch.tensor([True, False]), KTOConfig())
    >>> found.loss, found.slopes
    (tensor(0.4813), tensor([-0.0125,  0.0125]))
    """
    anchor = likelihoods.mean().clamp_min(0) if len(likelihoods) else likelihoods.new_zeros(())
    sign = torch.where(is_desirable, 1.0, -1.0).to(likelihoods)
    weight = torch.where(is_desirable, config.desirable, config.undesirable).to(likelihoods) / max(len(likelihoods), 1)
    missed = torch.sigmoid(-config.beta * sign * (likelihoods - anchor))
    return Values(-weight * sign * config.beta * missed * (1 - missed), (weight * missed).sum(), anchor)


@ALGORITHMS.register("kto")
class KTO(ClippedMethod[KTOConfig]):
    """Kahneman-Tversky optimisation of episodes that are desirable or not, without groups."""

    Config: ClassVar[type[KTOConfig]] = KTOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """A reference policy, the log-probabilities before the first update, and what the loss needs."""
        return super().needs | {Need.REFERENCE_LOGPROBS, Need.OLD_LOGPROBS}

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the pull of its episode, and what its turn's action costs.

        Raises:
            ConfigError: The table has no log-probabilities of a reference policy.
        """
        config = self.config
        likelihoods, heard = episode_likelihoods(table, config.normalisation, reference=True)
        is_desirable = table.episode_return()[heard] >= config.threshold
        found = values_of(likelihoods[heard], is_desirable, config)
        pulls = torch.zeros_like(likelihoods)
        pulls[heard] = -len(heard) * found.slopes
        turns = pulls[table.episode] - table.invalid_penalties(config.invalid_penalty)
        share = float(is_desirable.double().mean()) if len(heard) else 0.0
        metrics = {"kto_loss": float(found.loss), "kto_anchor": float(found.anchor), "kto_desirable": share}
        return Credit(table.to_tokens(turns), metrics=metrics)
