"""A progress model: the progress after each turn; its change is the reward (ProgRM)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.trainers.reward_models.base.fitted import FittedConfig, FittedReward, sigmoid
from turngym.trainers.reward_models.base.labels import find_recipes, label_progress
from turngym.trainers.reward_models.base.model import require
from turngym.trainers.reward_models.base.shaping import potential_rewards, require_zero_when
from turngym.trainers.reward_models.base.turns import progress_after
from turngym.wrappers.rewards.recipes import MATCHES, SCOPES, RecipeBook

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from turngym.trainers.reward_models.base.head import Loss

_CHOICES = {"labels": ("lcs", "environment"), "match": MATCHES, "scope": SCOPES}


@dataclass(frozen=True)
class ProgRMConfig(FittedConfig):
    """Settings of ``progrm``."""

    labels: str = "lcs"
    """``lcs`` labels by recipes from solved episodes, ``environment`` takes the progress that it reports."""
    match: str = "action"
    """Steps of a recipe: canonical actions (``action``), or the resulting states (``state``)."""
    scope: str = "task"
    """Solved episodes that form recipes: of the same ``task``, or of the whole ``environment``."""
    max_recipes: int = 4
    """Maximum number of recipes per task, one per route."""
    similarity: float = 0.5
    """Share of its initial steps that a recipe keeps when further solved episodes join it."""
    gamma: float = 1.0
    """Discount per turn in the change of progress."""
    zero_when: str = "never"
    """When progress counts as 0 at the end: ``never``, ``terminated`` or ``over`` (rewards then only shape)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be {' or '.join(map(repr, choices))}, got {getattr(self, name)!r}.")
        require("max_recipes", self.max_recipes, 1, 1000)
        require("similarity", self.similarity, 1e-6, 1)
        require("gamma", self.gamma, 0, 1)
        require_zero_when(self.zero_when, "progrm")


@REWARD_MODELS.register("progrm")
class ProgRM(FittedReward[ProgRMConfig]):
    """Progress learnt from automatic labels; the reward of a turn is its change.

    The changes add up to the progress at the end, so that going in circles earns nothing: a turn that was seen before
    has the progress that it had before.
    """

    name: ClassVar[str] = "progrm"
    Config = ProgRMConfig
    advice: ClassVar[str] = (
        " (episodes of unsolved tasks have no label; scope=environment takes the recipes of other tasks)"
    )

    def targets(self, trajectories: Sequence[Trajectory]) -> list[Sequence[float] | None]:
        """Return the label of every turn; None if the task was never solved, or the environment reports no progress."""
        if self.config.labels == "environment":
            return [_known(progress_after(each)[1:]) for each in trajectories]
        return list(label_progress(trajectories, self.recipes(trajectories)))

    def recipes(self, trajectories: Sequence[Trajectory]) -> RecipeBook:
        """Return the recipes of every task that was solved."""
        config = self.config
        return find_recipes(
            trajectories,
            match=config.match,
            scope=config.scope,
            most=config.max_recipes,
            similarity=config.similarity,
        )

    def loss(self, targets: Sequence[Sequence[float]]) -> Loss:
        """Return the mean squared error of progress over turns."""

        def error(outputs: Float[Tensor, "turn"], owner: Int[Tensor, "turn"], which: list[int]) -> Tensor:
            wanted = torch.tensor([value for k in which for value in targets[k]], dtype=outputs.dtype)
            return (torch.sigmoid(outputs) - wanted).square().mean()

        return error

    def progress(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return the progress after every whole turn, in (0, 1)."""
        return [[sigmoid(value) for value in own] for own in self.predictions(trajectories)]

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return the change of progress of every turn, from 0 before the first."""
        config = self.config
        return [
            potential_rewards(each, [0.0, *own], config.gamma, config.zero_when)
            for each, own in zip(trajectories, self.progress(trajectories), strict=True)
        ]

    def score(self, trajectory: Trajectory) -> float:
        """Return the progress at the end."""
        found = self.progress([trajectory])[0]
        return found[-1] if found else math.nan


def _known(progress: list[float]) -> list[float] | None:
    return None if any(math.isnan(value) for value in progress) else progress
