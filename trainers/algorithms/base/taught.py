"""The base of methods that learn from a teacher's log-probabilities of what the policy sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms.base.clipped import PolicyMethod, RatioLevel, one_of, policy_metrics
from turngym.trainers.core.algorithm import LossInputs, LossOutput, Need, Normalisation, Term
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class Gaps(NamedTuple):
    """Distance from a teacher.

    Args:
        values: The teacher's log-probability of each sampled token minus another one; 0 where the teacher is silent.
        taught: Tokens for which the teacher has one.
    """

    values: Float[Tensor, "token"]
    taught: Bool[Tensor, "token"]

    @property
    def masked(self) -> Tensor | None:
        """Tokens without a teacher; None if there are none."""
        return None if bool(self.taught.all()) else ~self.taught

    def metrics(self) -> dict[str, float]:
        """Return the estimate of the KL from policy to teacher in nats per token, and the share of taught tokens."""
        count = max(int(self.taught.sum()), 1)
        taught = float(self.taught.double().mean()) if len(self.taught) else 0.0
        return {"kl_teacher": -float(self.values.sum()) / count, "taught": taught}


def gaps_to_teacher(table: TurnTable, logprobs: Tensor) -> Gaps:
    """Return the distance of some log-probabilities of the sampled tokens from the teacher's.

    Raises:
        ConfigError: The table has none of a teacher.
    """
    teacher = teacher_logprobs(table)
    taught = ~teacher.isnan()
    return Gaps(torch.where(taught, teacher - logprobs, 0.0), taught)


def teacher_logprobs(table: TurnTable) -> Float[Tensor, "token"]:
    """Return the teacher's log-probability of each sampled token, nan where it is silent.

    Raises:
        ConfigError: The table has none.
    """
    if table.token_teacher_logprob is None:
        raise ConfigError(
            "the turn table has no 'token_teacher_logprob': fill it with the log-probabilities of a teacher."
        )
    return table.token_teacher_logprob


@dataclass(frozen=True)
class TaughtConfig:
    """Settings of methods that learn from a teacher alone."""

    normalisation: Normalisation = "token"
    """Normalisation of the loss."""

    def __post_init__(self) -> None:
        one_of("normalisation", self.normalisation, F.NORMALISATIONS)


TaughtConfigT = TypeVar("TaughtConfigT", bound=TaughtConfig)


class TaughtMethod(PolicyMethod[TaughtConfigT]):
    """A method whose only signal is a teacher; rewards are logged and not learnt from."""

    @property
    def needs(self) -> frozenset[Need]:
        """The teacher's log-probabilities."""
        return frozenset({Need.TEACHER_LOGPROBS})

    @property
    def normalisation(self) -> str:
        """The normalisation of the loss."""
        return self.config.normalisation

    @property
    def normalisations(self) -> frozenset[str]:
        """That of the loss, and those of the metrics."""
        return frozenset({self.normalisation, "token", "turn"})

    def with_ratio(self, level: RatioLevel) -> Self:
        """Refuse another importance ratio.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(f"{type(self).__name__} has no turn-level ratio. Take a base such as grpo+opd_advantage.")

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the policy term and the metrics that all methods log."""
        surrogate = self.surrogate(inputs)
        return LossOutput(
            {"policy": Term(surrogate.policy.loss, self.normalisation)}, policy_metrics(surrogate, "token")
        )


def never(inputs: LossInputs) -> Any:
    """Return a mask without a token, for losses that clip nothing."""
    return torch.zeros_like(inputs.action_mask)
