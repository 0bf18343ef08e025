"""The probability that a turn was right, fitted to labels of turns; it is the turn's reward (Math-, GUI-Shepherd)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, nn, torch
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.trainers.reward_models.base.fitted import FittedConfig, FittedReward, sigmoid
from turngym.trainers.reward_models.base.model import require
from turngym.trainers.reward_models.base.shaping import own_part
from turngym.trainers.reward_models.base.turns import progress_after

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from turngym.trainers.reward_models.base.head import Loss


@dataclass(frozen=True)
class ShepherdConfig(FittedConfig):
    """Settings of ``shepherd``."""

    baseline: float = 0.0
    """Subtracted from every probability: with 0.5 turns that look wrong cost, and more of them earn nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require("baseline", self.baseline, 0, 1)


@REWARD_MODELS.register("shepherd")
class Shepherd(FittedReward[ShepherdConfig]):
    """Probability that each turn was right, added to the environment's rewards."""

    name: ClassVar[str] = "shepherd"
    Config = ShepherdConfig
    advice: ClassVar[str] = " (labels of turns are the progress in [0, 1] after them: label-progress --playouts)"

    def targets(self, trajectories: Sequence[Trajectory]) -> list[Sequence[float] | None]:
        """Return the label of every turn, which is the progress after it; None unless all of them are in [0, 1]."""
        labels = [progress_after(each)[1:] for each in trajectories]
        return [own if all(0 <= value <= 1 for value in own) else None for own in labels]

    def loss(self, targets: Sequence[Sequence[float]]) -> Loss:
        """Return the cross-entropy over turns.

        >>> wanted = [[1.0, 0.75]]
        >>> error = Shepherd(ShepherdConfig()).loss(wanted)
        >>> round(float(error(torch.tensor([2.0, 0.0]), torch.tensor([0, 0]), [0])), 4)
        0.41
        """

        def error(outputs: Float[Tensor, "turn"], owner: Int[Tensor, "turn"], which: list[int]) -> Tensor:
            wanted = torch.tensor([value for k in which for value in targets[k]], dtype=outputs.dtype)
            return torch.as_tensor(nn.functional.binary_cross_entropy_with_logits(outputs, wanted))

        return error

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return the probability of every turn, less the baseline."""
        found = zip(trajectories, self.predictions(trajectories), strict=True)
        return [own_part(each, [sigmoid(value) - self.config.baseline for value in own]) for each, own in found]

    def score(self, trajectory: Trajectory) -> float:
        """Return the smallest probability of a turn."""
        return min(map(sigmoid, self.predictions([trajectory])[0]), default=math.nan)
