"""A progress estimator: what each turn contributed to the outcome of its episode (SPA-RL, arXiv 2505.20732)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.trainers.reward_models.base.fitted import FittedConfig, FittedReward
from turngym.trainers.reward_models.base.model import require
from turngym.trainers.reward_models.base.shaping import own_part
from turngym.trainers.reward_models.base.turns import whole_turns

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from turngym.trainers.reward_models.base.head import Loss

_OUTCOMES = ("reward_sum", "success", "score")


@dataclass(frozen=True)
class SPAConfig(FittedConfig):
    """Settings of ``spa``."""

    outcome: str = "reward_sum"
    """Target of the sum of contributions: ``reward_sum``, ``success`` (1 or 0) or ``score``."""
    bonus: float = 0.5
    """Given to every turn whose action the environment could execute, and to the last turn always."""
    exact: bool = False
    """True if what is missing to the outcome is shared by the turns of an episode, so that they add up exactly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require("bonus", self.bonus, -1e6, 1e6)
        if self.outcome not in _OUTCOMES:
            raise ConfigError(f"outcome must be one of {', '.join(_OUTCOMES)}, got {self.outcome!r}.")


def outcome_loss(
    contributions: Float[Tensor, "turn"], owner: Int[Tensor, "turn"], outcomes: Float[Tensor, "episode"]
) -> Tensor:
    """Return the mean over episodes of the squared difference between their summed contributions and their outcome.

    Args:
        contributions: Of each turn.
        owner: Episode of each turn; an episode without one adds up to 0.
        outcomes: Of each episode.

    >>> parts = torch.tensor([0.25, 0.25], dtype=torch.float64)
    >>> float(outcome_loss(parts, torch.tensor([0, 0]), torch.tensor([1.0])))
    0.25
    """
    sums = torch.zeros_like(outcomes, dtype=contributions.dtype).index_add(0, owner, contributions)
    return (sums - outcomes.to(sums.dtype)).square().mean()


def step_rewards(contributions: Sequence[float], is_valid: Sequence[bool], bonus: float = 0.5) -> list[float]:
    """Return contributions with the bonus for actions that could be executed; the last turn always gets it.

    >>> step_rewards([0.2, 0.3, 0.1], [True, False, False])
    [0.7, 0.3, 0.6]
    """
    last = len(contributions) - 1
    pairs = enumerate(zip(contributions, is_valid, strict=True))
    return [part + bonus * (valid or k == last) for k, (part, valid) in pairs]


def completed(contributions: Sequence[float], outcome: float) -> list[float]:
    """Return contributions that add up to the outcome: the difference is shared by all turns.

    >>> completed([0.25, 0.25], 1.0)
    [0.5, 0.5]
    """
    share = (outcome - math.fsum(contributions)) / max(len(contributions), 1)
    return [part + share for part in contributions]


@REWARD_MODELS.register("spa")
class SPA(FittedReward[SPAConfig]):
    """Contributions of turns that add up to the outcome; they replace the environment's rewards."""

    name: ClassVar[str] = "spa"
    Config = SPAConfig
    replaces: ClassVar[bool] = True

    def outcome(self, trajectory: Trajectory) -> float:
        """Return what the contributions of an episode add up to."""
        if self.config.outcome == "success":
            return float(trajectory.success == 1)
        return trajectory.score if self.config.outcome == "score" else trajectory.reward_sum

    def targets(self, trajectories: Sequence[Trajectory]) -> list[Sequence[float] | None]:
        """Return the outcome of every episode; None where it is not finite."""
        outcomes = [self.outcome(each) for each in trajectories]
        return [[value] if math.isfinite(value) else None for value in outcomes]

    def loss(self, targets: Sequence[Sequence[float]]) -> Loss:
        """Return the mean squared error of summed contributions over episodes."""

        def error(outputs: Float[Tensor, "turn"], owner: Int[Tensor, "turn"], which: list[int]) -> Tensor:
            return outcome_loss(outputs, owner, torch.tensor([targets[k][0] for k in which]))

        return error

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return contribution and bonus of every turn."""
        found = []
        for each, parts in zip(trajectories, self.predictions(trajectories), strict=True):
            if self.config.exact and each.spec.branch is None:  # rewards before a branch are shared already
                parts = completed(parts, self.outcome(each))
            valid = [turn.action_is_valid for turn in whole_turns(each)]
            found.append(own_part(each, step_rewards(parts, valid, self.config.bonus)))
        return found

    def score(self, trajectory: Trajectory) -> float:
        """Return the sum of contributions, the expected outcome; 0 without a turn."""
        return math.fsum(self.predictions([trajectory])[0])
