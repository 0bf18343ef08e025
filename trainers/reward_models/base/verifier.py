"""A fitted reward model as the verifier of an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.trainers.reward_models import load_reward_model
from turngym.trainers.reward_models.base.model import RewardModel


class RewardModelVerifier:
    """Scores a whole attempt.

    Args:
        model: The reward model.
    """

    def __init__(self, model: RewardModel[Any]) -> None:
        self.model = model

    def score(self, trajectory: Trajectory) -> float:
        """Return the model's score of an attempt, without its outcome; 0 without a turn."""
        return self.model.score(trajectory) if trajectory.turns else 0.0


def load_verifier(folder: str) -> RewardModelVerifier:
    """Return the verifier of a folder that ``turngym fit-reward`` or a training run has written.

    Raises:
        ConfigError: No folder is named.
        CheckpointError: The folder holds no reward model.
    """
    if not folder:
        raise ConfigError("the verifier reward_model needs a folder: write reward_model:FOLDER.")
    return RewardModelVerifier(load_reward_model(Path(folder)))
