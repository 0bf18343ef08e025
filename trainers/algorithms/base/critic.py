"""The base of methods with a critic: the value loss in addition to the clipped policy loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms.base.clipped import required, sampled, within
from turngym.trainers.algorithms.base.reward_kl import RewardKLConfig, RewardKLMethod
from turngym.trainers.core.algorithm import LossInputs, LossOutput, Need, Term
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class CriticConfig(RewardKLConfig):
    """Settings of methods with a critic."""

    gamma: float = 1.0
    """Discount per time step: a token or a turn, depending on the method."""
    lam: float = 1.0
    """Decay of generalised advantage estimation: 1 gives return minus value, 0 the error of one time step."""
    whiten: bool = True
    """True if advantages are shifted and scaled to mean 0 and variance 1 over the batch."""
    bootstrap_truncated: bool = False
    """True if truncated episodes are bootstrapped with the critic's value; False treats them as terminated."""
    value_coef: float = 1.0
    """Weight of the value loss, which is half of a squared error."""
    value_clip: float = 0.5
    """Clip range of the value around its old value; 0 for no limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("gamma", self.gamma, 0, 1)
        within("lam", self.lam, 0, 1)
        within("value_coef", self.value_coef, 0)
        within("value_clip", self.value_clip, 0)


CriticConfigT = TypeVar("CriticConfigT", bound=CriticConfig)


class CriticMethod(RewardKLMethod[CriticConfigT]):
    """Clipped policy loss and clipped value loss."""

    @property
    def needs(self) -> frozenset[Need]:
        """The critic's values, and what the policy loss needs."""
        return super().needs | {Need.VALUES}

    @property
    def value_normalisation(self) -> str:
        """Over what the value loss is averaged."""
        return self.normalisation

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the policy loss, and that of the value loss."""
        return super().normalisations | {self.value_normalisation}

    def value_scale(self, inputs: LossInputs) -> Tensor | float:
        """Return what the value loss of each token is multiplied by before it is averaged."""
        return 1.0

    def bootstrap(self, table: TurnTable) -> Float[Tensor, "episode"]:
        """Return the value after the last turn of each episode: 0 unless it was truncated and may be bootstrapped.

        Raises:
            ConfigError: The table has no values.
        """
        values = critic_column(table.final_value, "final_value").to(table.reward.dtype)
        if not self.config.bootstrap_truncated:
            return torch.zeros_like(values)
        truncated = table.episode_sum(table.truncated.to(values.dtype)) > 0
        return torch.where(truncated, values, torch.zeros_like(values))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms and metrics of the policy, with those of the critic."""
        policy = super().loss(inputs)
        value = F.value_loss(
            sampled(required(inputs.values, "values"), inputs),
            sampled(required(inputs.old_values, "old_values"), inputs),
            required(inputs.returns, "returns"),
            clip=self.config.value_clip,
        )
        scale, over = self.value_scale(inputs), self.value_normalisation
        losses = sampled(value.loss * scale, inputs)
        clipped = sampled(value.clipped.to(losses.dtype) * scale, inputs)
        terms = {**policy.terms, "value": Term(self.config.value_coef * losses, over)}
        metrics = {
            **policy.metrics,
            "value_loss": Term(losses.detach(), over),
            "value_clip_fraction": Term(clipped, over),
        }
        return LossOutput(terms, metrics, policy.probes)


def critic_column(column: Tensor | None, name: str) -> Tensor:
    """Return a column of the turn table that the critic fills.

    Raises:
        ConfigError: It is empty.
    """
    if column is None:
        raise ConfigError(f"the turn table has no {name!r}. Fill the critic's columns with TurnTable.with_values.")
    return column
