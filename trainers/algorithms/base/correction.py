"""The base of modifiers that correct for samples of another distribution than the trainer's.

A sampler rounds differently from the trainer, or has older weights. With ``p`` the policy before the first update of an
iteration, as the trainer computes it, and ``b`` the distribution that was sampled from, as the sampler gave it, the
ratios of the base method are taken against ``p``, and ``p / b`` gives each token a weight or takes it out of the loss.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms.base.clipped import Surrogate, one_of
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need
from turngym.trainers.core.turn_table import TurnTable

Level: TypeAlias = Literal["token", "turn", "episode"]
Counted: TypeAlias = Literal["kept", "all"]


class Correction(NamedTuple):
    """Result of a sampler correction for a batch.

    Args:
        weight: Weight of each token in the policy loss.
        kept: Tokens that stay in the loss.
        metrics: Numbers to log.
        counted: Tokens over which the loss is averaged.
    """

    weight: Tensor
    kept: Tensor
    metrics: Mapping[str, float]
    counted: Counted = "all"


@dataclass(frozen=True)
class CorrectionConfig:
    """Settings of corrections that take tokens out of the loss."""

    counted: Counted = field(default="kept", kw_only=True)
    """Which tokens the loss is averaged over: those that are kept, or all; masked ones then make the step smaller."""

    def __post_init__(self) -> None:
        one_of("counted", self.counted, get_args(Counted))


CorrectionConfigT = TypeVar("CorrectionConfigT")


def segments_of(table: TurnTable, level: Level) -> Tensor | None:
    """Return the segment of each sampled token: its turn, its episode, or None for a token by itself."""
    if level == "token":
        return None
    return table.token_turn if level == "turn" else table.to_tokens(table.episode)


class SamplerCorrection(Modifier[CorrectionConfigT]):
    """A modifier that weighs or masks sampled tokens by how much more likely the trainer finds them than the sampler.

    Raises:
        ConfigError: It gives weights, and the base has weights of its own against the sampler.
    """

    label: ClassVar[str]
    """Beginning of the names of its metrics and columns."""
    gives_weights: ClassVar[bool] = True

    def __init__(self, config: CorrectionConfigT, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        if self.gives_weights and self.base.weighs_sampler:
            raise ConfigError(
                f"{type(self.base).__name__} weighs samples against the sampler already, and {self.label} would do so "
                "again: leave one of them out."
            )

    @property
    def needs(self) -> frozenset[Need]:
        """The trainer's log-probabilities before the first update, and what the base needs."""
        return super().needs | {Need.TRAINER_LOGPROBS}

    @property
    def weighs_sampler(self) -> bool:
        """True if this or the base gives weights."""
        return self.gives_weights or self.base.weighs_sampler

    @property
    def changes_policy_loss(self) -> bool:
        """True: tokens are weighted or masked."""
        return True

    @abstractmethod
    def correction(self, gaps: Tensor, table: TurnTable) -> Correction:
        """Return weights and masks.

        Args:
            gaps: Log-probability of each sampled token under the trainer minus the sampler's.
            table: The batch.
        """

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and hand on weights and masks."""
        credit = super().credit(table)
        if table.token_trainer_logprob is None:
            raise ConfigError(
                f"{self.label} compares the sampler with the trainer, and the turn table has no "
                "'token_trainer_logprob': fill it with the policy's log-probabilities before its update."
            )
        found = self.correction(table.token_trainer_logprob - table.token_logprob, table)
        columns = {f"{self.label}_weight": found.weight, f"{self.label}_kept": found.kept}
        masked = credit.masked
        if found.counted == "kept":
            masked = ~found.kept if masked is None else ~found.kept | masked
        return replace(
            credit,
            columns={**credit.columns, **columns},
            masked=masked,
            metrics={**credit.metrics, **{f"{self.label}_{name}": value for name, value in found.metrics.items()}},
        )

    def corrected(self, inputs: LossInputs) -> LossInputs:
        """Return loss inputs with weighted advantages, in which masked tokens are not sampled ones."""
        kept = inputs.numbers(f"{self.label}_kept").bool()
        weight = inputs.numbers(f"{self.label}_weight").to(inputs.advantages)
        return replace(
            inputs,
            advantages=inputs.advantages * weight * kept,
            action_mask=inputs.action_mask & kept,
            turn_ids=torch.where(kept, inputs.turn_ids, -1),
        )

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the base's per-token policy loss of the corrected inputs."""
        return super().surrogate(self.corrected(inputs))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms of the corrected inputs."""
        return super().loss(self.corrected(inputs))


def share(mask: Tensor) -> float:
    """Return the share of tokens under a mask; 0 without tokens."""
    return float(mask.double().mean()) if len(mask) else 0.0
