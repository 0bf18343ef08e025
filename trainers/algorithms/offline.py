"""Offline training of another method: on episodes that the policy played before it was trained, and no others.

The regime of methods that learn from a fixed data set, such as RSO (Liu et al. 2023, arXiv 2309.06657) and A-LoL
(arXiv 2305.14718), with the policy after its warm-up as the source of the data. A modifier: in its first iterations it
records what the base method collects and leaves the policy alone; later ones train on that, over and over. Credit and
ratios are those of the policy before the updates of an iteration, not of the one that played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.errors import ConfigError
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, Need, Rollout
from turngym.trainers.core.turn_table import TurnTable


@dataclass(frozen=True)
class OfflineConfig:
    """Settings of offline training."""

    rollouts: int = 8
    """Iterations that only record; their episodes are all that is trained on."""

    def __post_init__(self) -> None:
        within("rollouts", self.rollouts, 1)


@ALGORITHMS.register("offline")
class Offline(Modifier[OfflineConfig]):
    """Training on episodes of the policy before training alone, by another method."""

    Config: ClassVar[type[OfflineConfig]] = OfflineConfig

    def __init__(self, config: OfflineConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.recorded: list[list[Trajectory]] = []
        """The episodes of each recording iteration."""
        self._iteration = 0

    @property
    def needs(self) -> frozenset[Need]:
        """The policy's log-probabilities before the first update, which the recorded ones no longer are."""
        return super().needs | {Need.TRAINER_LOGPROBS}

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the iteration, which decides whether to record and what comes next."""
        super().begin_iteration(iteration, num_iterations)
        self._iteration = iteration

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        """Gather trajectories as the base does while recording, then return those of one recorded iteration.

        Raises:
            ConfigError: The base trains on episodes that branch off others.
        """
        if self._is_recording or not self.recorded:
            found = self.base.collect(rollout)
            if any(each.spec.branch for each in found):
                base = type(self.innermost).__name__
                raise ConfigError(
                    f"offline records whole episodes, and {base} trains on episodes that branch off others: leave "
                    "offline out, or take another method, such as dpo."
                )
            return found
        return list(self.recorded[(self._iteration - self.config.rollouts) % len(self.recorded)])

    @property
    def _is_recording(self) -> bool:
        return self._iteration < self.config.rollouts

    def trains_policy(self, iteration: int) -> bool:
        """Return False while recording, then what the base says."""
        return iteration >= self.config.rollouts and super().trains_policy(iteration)

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Keep the batch while recording."""
        super().update_state(trajectories, credit)
        if self._is_recording:
            self.recorded.append(list(trajectories))

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does, and count the passes over the data."""
        credit = super().credit(table)
        passes = {"offline_passes": max(self._iteration / self.config.rollouts - 1, 0.0)}
        return replace(credit, metrics={**credit.metrics, **passes})

    def state(self) -> dict[str, Any]:
        """Return the recorded episodes, and the base's state."""
        recorded = [[trajectory_to_json(each) for each in batch] for batch in self.recorded]
        return {**super().state(), "recorded": recorded}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore them."""
        super().load_state(state)
        self.recorded = [[trajectory_from_json(each) for each in batch] for batch in state["recorded"]]
