"""The base of modifiers with a policy loss of their own around the credit of another method."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from turngym.errors import ConfigError
from turngym.lazy import Tensor
from turngym.trainers.algorithms.base.clipped import Surrogate, policy_metrics
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, ConfigT, LossInputs, LossOutput, Term


class PolicyLoss(Modifier[ConfigT]):
    """A modifier that replaces the base's policy loss; credit, normalisation and the other terms stay the base's.

    Raises:
        ConfigError: A modifier inside of it has changed the policy loss already.
    """

    def __init__(self, config: ConfigT, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        if self.base.changes_policy_loss:
            raise ConfigError(
                f"{type(self).__name__} replaces the policy loss, which {type(self.base).__name__} changes already. "
                "Name it directly after the method, as in grpo+dppo+tis, and only one such loss."
            )

    @property
    def changes_policy_loss(self) -> bool:
        """True: it is replaced."""
        return True

    @abstractmethod
    def changed(self, found: Surrogate, inputs: LossInputs) -> Surrogate:
        """Return the policy loss per token, before normalisation.

        Args:
            found: The base's own, with the importance ratio at its level.
            inputs: The micro-batch.
        """

    def penalty(self, found: Surrogate, inputs: LossInputs) -> Tensor | None:
        """Return a term that is added per token, whatever the advantage; None for none."""
        return None

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the per-token policy loss before normalisation."""
        return self.changed(self.base.surrogate(inputs), inputs)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms with this policy loss, the penalty, and the metrics."""
        output, found = self.base.loss(inputs), self.surrogate(inputs)
        terms = {**output.terms, "policy": Term(found.policy.loss, self.normalisation)}
        penalty = self.penalty(found, inputs)
        if penalty is not None:
            terms["policy_penalty"] = Term(penalty, self.normalisation)
        metrics = policy_metrics(found, output.metrics["ratio_mean"].over)
        return replace(output, terms=terms, metrics={**output.metrics, **metrics})
