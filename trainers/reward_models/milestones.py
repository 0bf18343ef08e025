"""Rewards progress that the environment reports, or that patterns find in observations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.trainers.reward_models.base.model import RewardConfig, RewardModel, require
from turngym.trainers.reward_models.base.shaping import potential_rewards, require_zero_when
from turngym.trainers.reward_models.base.turns import progress_after, turn_texts
from turngym.wrappers.rewards.progress_reward import potential


@dataclass(frozen=True)
class MilestonesConfig(RewardConfig):
    """Settings of ``milestones``."""

    gamma: float = 1.0
    """The discount per turn that the trainer uses."""
    zero_when: str = "terminated"
    """When the potential at the end is 0: ``terminated``, ``over`` or ``never``, as for the wrapper progress_reward."""
    patterns: tuple[str, ...] = ()
    """Regular expressions to find in what was seen, one per milestone; none takes the environment's progress."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require("gamma", self.gamma, 0, 1)
        require_zero_when(self.zero_when, "milestones")
        for pattern in self.patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"the pattern {pattern!r} is not a regular expression: {error}.") from error


@REWARD_MODELS.register("milestones")
class Milestones(RewardModel[MilestonesConfig]):
    """Differences of progress: the environment's, or the share of patterns that have been seen so far.

    >>> from turngym.agents.trajectory import EpisodeSpec, Turn
    >>> model = Milestones(MilestonesConfig(patterns=("key", "door"), zero_when="never"))
    >>> turns = [Turn("a hall", "", "take"), Turn("you have the key", "", "go")]
    >>> model.rewards([Trajectory(EpisodeSpec(0, 0), turns=turns, final_observation="the door is open")])
    [[0.5, 0.5]]
    """

    name: ClassVar[str] = "milestones"
    Config = MilestonesConfig

    def __init__(self, config: MilestonesConfig) -> None:
        super().__init__(config)
        self._patterns = [re.compile(pattern) for pattern in config.patterns]

    def progress(self, trajectory: Trajectory) -> list[float]:
        """Return the progress before the first and after each whole turn."""
        if not self._patterns:
            return progress_after(trajectory)
        texts = turn_texts(trajectory)
        reached: set[int] = set()
        found = []
        for seen in [*(text.goal for text in texts[:1]), *(text.seen for text in texts)]:
            reached |= {k for k, pattern in enumerate(self._patterns) if pattern.search(seen)}
            found.append(len(reached) / len(self._patterns))
        return found

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Return ``gamma * phi(next) - phi(current)`` for every turn; an unknown progress counts as 0."""
        return [
            potential_rewards(
                each, [potential(p, 1.0) for p in self.progress(each)], self.config.gamma, self.config.zero_when
            )
            for each in trajectories
        ]

    def score(self, trajectory: Trajectory) -> float:
        """Return the progress at the end."""
        return self.progress(trajectory)[-1] if trajectory.turns else trajectory.progress
