"""Modifiers: methods that change one thing about another method and delegate the rest."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from turngym.agents.trajectory import Trajectory, Turn
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn
from turngym.trainers.algorithms.base.clipped import PolicyMethod, RatioLevel, Surrogate
from turngym.trainers.core.algorithm import (
    Algorithm,
    ConfigT,
    Credit,
    Divergence,
    Gradients,
    LossInputs,
    LossOutput,
    Need,
    Rollout,
)
from turngym.trainers.core.columns import TokenColumn
from turngym.trainers.core.turn_table import TurnTable


def logged(metrics: Mapping[str, float], name: str) -> float | None:
    """Return the metric that a loss logged under ``name``, with any prefix, or None.

    >>> logged({"loss/entropy": 0.5}, "entropy")
    0.5
    """
    return next((value for key, value in metrics.items() if key.rpartition("/")[2] == name), None)


class Modifier(PolicyMethod[ConfigT]):
    """A method that wraps another one; everything it does not override is delegated.

    Args:
        config: The modifier's own settings.
        base: The method that it changes.

    Raises:
        ConfigError: The base is not a policy method, or the modifier would change nothing about it.
    """

    needs_advantages: ClassVar[bool] = False
    """Whether it works, in part at least, through the advantages of the base."""

    def __init__(self, config: ConfigT, base: Algorithm[Any]) -> None:
        super().__init__(config)
        if not isinstance(base, PolicyMethod):
            raise ConfigError(
                f"{type(self).__name__} changes methods with a policy surrogate, got {type(base).__name__}. "
                "Compose it with a method such as ppo or grpo."
            )
        self.base: PolicyMethod[Any] = base
        if self.needs_advantages and not base.reads_advantages:
            raise ConfigError(
                f"{type(self).__name__} works through advantages, which the loss of {type(self.innermost).__name__} "
                "does not read: leave it out, or take a base such as grpo."
            )

    @property
    def innermost(self) -> Algorithm[Any]:
        """The base method at the bottom of the composition."""
        inner = self.base
        while isinstance(inner, Modifier):
            inner = inner.base
        return inner

    @property
    def needs(self) -> frozenset[Need]:
        """The needs of the base."""
        return self.base.needs

    @property
    def normalisation(self) -> str:
        """The normalisation of the base's policy loss."""
        return self.base.normalisation

    @property
    def normalisations(self) -> frozenset[str]:
        """The normalisations that the base reads."""
        return self.base.normalisations

    @property
    def compares_same_seat(self) -> bool:
        """Loss of the base method."""
        return self.base.compares_same_seat

    @property
    def named_roles(self) -> tuple[str, ...]:
        """Roles that the settings of the base method name."""
        return self.base.named_roles

    @property
    def reference_every(self) -> int:
        """Loss of the base method."""
        return self.base.reference_every

    @property
    def divergence(self) -> Divergence | None:
        """Divergence from the teacher that the base reads."""
        return self.base.divergence

    def update_columns(self, table: TurnTable, logprobs: Tensor) -> Mapping[str, TokenColumn]:
        """Return those of the base."""
        return self.base.update_columns(table, logprobs)

    def other_observation(self, turn: Turn) -> str | None:
        """Return that of the base."""
        return self.base.other_observation(turn)

    @property
    def weighs_sampler(self) -> bool:
        """Loss of the base method."""
        return self.base.weighs_sampler

    @property
    def reads_advantages(self) -> bool:
        """Loss of the base method."""
        return self.base.reads_advantages

    @property
    def changes_policy_loss(self) -> bool:
        """True if this or the base changes the policy loss."""
        return self.base.changes_policy_loss

    def surrogate(self, inputs: LossInputs) -> Surrogate:
        """Return the base's per-token policy loss."""
        return self.base.surrogate(inputs)

    def with_ratio(self, level: RatioLevel) -> Self:
        """Return the composition with another importance ratio in its base."""
        changed = copy.copy(self)
        changed.base = self.base.with_ratio(level)
        return changed

    def without_entropy_bonus(self) -> Self:
        """Return the composition without an entropy bonus in its base."""
        changed = copy.copy(self)
        changed.base = self.base.without_entropy_bonus()
        return changed

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does."""
        return self.base.credit(table)

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms."""
        return self.base.loss(inputs)

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Called at the start of each iteration."""
        self.base.begin_iteration(iteration, num_iterations)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Called with the metrics of a finished iteration."""
        self.base.observe(metrics)

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the base's state."""
        self.base.update_state(trajectories, credit)

    def state(self) -> dict[str, Any]:
        """Return the base's state under the key ``base``."""
        return {"base": self.base.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the base's state."""
        self.base.load_state(state["base"])

    def modules(self) -> Mapping[str, nn.Module]:
        """Return the base's networks."""
        return self.base.modules()

    def module_losses(self, credit: Credit) -> Iterator[Tensor]:
        """Return the base's losses of its networks."""
        return self.base.module_losses(credit)

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories as the base does."""
        return self.base.collect(rollout)

    def transform_gradients(
        self, gradients: Sequence[Tensor], probes: Mapping[str, Sequence[Tensor]], metrics: Mapping[str, float]
    ) -> Gradients:
        """Return the gradients that the base makes of them."""
        return self.base.transform_gradients(gradients, probes, metrics)

    def trains_policy(self, iteration: int) -> bool:
        """Return what the base says."""
        return self.base.trains_policy(iteration)
