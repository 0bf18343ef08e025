"""The reward model interface: rewards for the turns of gathered trajectories."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from turngym.agents.trajectory import Trajectory, Turn
from turngym.arithmetic import as_float
from turngym.columns import REWARD, as_columns, reward_parts
from turngym.errors import ConfigError, DivergenceError

ConfigT = TypeVar("ConfigT", bound="RewardConfig")


@dataclass(frozen=True)
class RewardConfig:
    """Settings that every reward model has."""

    weight: float = 1.0
    """Factor of the model's rewards."""

    def __post_init__(self) -> None:
        require("weight", self.weight, -1e6, 1e6)


class RewardModel(ABC, Generic[ConfigT]):
    """Scores turns.

    Args:
        config: Its settings.
    """

    name: ClassVar[str]
    """The name that it is registered under."""
    Config: ClassVar[type[Any]]
    """The frozen dataclass of its settings."""
    is_trainable: ClassVar[bool] = False
    """True if it must be fitted to recorded trajectories before it can score."""
    replaces: ClassVar[bool] = False
    """True if its rewards replace the environment's; otherwise they are added."""
    compares_groups: ClassVar[bool] = False
    """True if the reward of an episode depends on the others of its group."""

    def __init__(self, config: ConfigT) -> None:
        self.config = config

    @property
    def is_ready(self) -> bool:
        """True if it can score; until then rewards are not changed."""
        return True

    @abstractmethod
    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return for each trajectory a reward for each of its turns, before ``weight``; pure.

        Args:
            trajectories: Ones without a fault and with a turn. Turns from before one branched off are in
                ``earlier_turns`` and get nothing. Where the model compares groups, they are all episodes that an
                iteration has played so far, branches, continuations and greedy replays included.
        """

    def score(self, trajectory: Trajectory) -> float:
        """Return how good a whole attempt looks, given no rewards and outcome; NaN if it cannot tell."""
        return math.nan

    def metrics(self) -> dict[str, float]:
        """Return figures since the last call, by name."""
        return {}

    # Trainable ones.

    def fit(self, trajectories: Sequence[Trajectory], seed: int = 0) -> dict[str, float]:
        """Fit it to recorded trajectories, from scratch; returns how well that went.

        Raises:
            ConfigError: It is not trained.
        """
        raise ConfigError(f"the reward model {self.name!r} is a rule: there is nothing to fit. Use it as it is.")

    def save(self, folder: Path) -> None:
        """Write it into a folder.

        Raises:
            ConfigError: It is not trained.
        """
        raise ConfigError(f"the reward model {self.name!r} is a rule: there is nothing to save. Use it as it is.")

    def load(self, folder: Path, stored: Mapping[str, Any]) -> None:
        """Take in what ``save`` wrote.

        Args:
            folder: The folder.
            stored: Its ``reward_model.json``.

        Raises:
            ConfigError: It is not trained.
        """
        raise ConfigError(f"the reward model {self.name!r} is a rule: there is nothing to load. Use it as it is.")


def require(name: str, value: float, least: float, most: float) -> None:
    """Raise for a number outside of a range.

    Raises:
        ConfigError: It is outside.
    """
    if not least <= value <= most:
        raise ConfigError(f"{name} must be in [{least:g}, {most:g}], got {value}.")


def rewarded(model: RewardModel[Any], trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """Return the trajectories with the rewards that a model gives; those passed stay as they are.

    Faulted ones and ones without a turn are not changed, nor is anything while the model is not ready. Each
    turn names the part of the model among the parts of its reward.

    Raises:
        DivergenceError: The model gave something that is not finite.
    """
    kept = [each for each in trajectories if not each.fault and each.turns]
    if not kept or not model.is_ready:
        return list(trajectories)
    given = model.rewards(kept)
    changed = {id(each): _with(model, each, own) for each, own in zip(kept, given, strict=True)}
    return [changed.get(id(each), each) for each in trajectories]


def _with(model: RewardModel[Any], trajectory: Trajectory, given: Sequence[float]) -> Trajectory:
    turns = [_turn(model, turn, value) for turn, value in zip(trajectory.turns, given, strict=True)]
    return replace(trajectory, turns=turns)


def _turn(model: RewardModel[Any], turn: Turn, value: float) -> Turn:
    value = as_float(value)
    part = model.config.weight * value
    if not math.isfinite(part):
        raise DivergenceError(f"the reward model {model.name!r} gave {value} for the action {turn.action[:60]!r}.")
    others = {name: value for name, value in turn.columns.items() if not name.startswith(REWARD)}
    if model.replaces:
        return replace(turn, reward=part, columns={**others, **as_columns({model.name: part})})
    before = reward_parts(turn.columns) or {"reward": turn.reward}
    return replace(turn, reward=turn.reward + part, columns={**others, **as_columns({**before, model.name: part})})
