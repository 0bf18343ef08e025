"""A model that sees trains on MiniWoB's screenshots."""

from __future__ import annotations

import math

import pytest
from vision_models import embedded_model

from turngym.agents import play_groups
from turngym.agents.players import AgentSettings
from turngym.envs.vector import make_vec
from turngym.trainers import build
from turngym.trainers.engine.learner import Learner, UpdateConfig

pytestmark = pytest.mark.integration
pytest.importorskip("miniwob")


def test_an_update_from_screenshots_alone() -> None:
    model = embedded_model()
    vector = make_vec("turngym/MiniWoB-v0", 2, autoreset_mode="disabled", task="click-color", image=True, max_turns=2)
    settings = AgentSettings(prompt={"pictures_only": True, "instructions": False}, max_new_tokens=4)
    try:
        played = play_groups(vector, model, groups=1, group_size=2, settings=settings)
    finally:
        vector.close()
    turns = [turn for episode in played for turn in episode.turns]
    assert not any(episode.fault for episode in played) and all(len(turn.pictures) == 1 for turn in turns)
    for number, turn in enumerate(turns):
        turn.reward = float(number % 2)
    metrics = Learner(model, build("reinforce"), UpdateConfig()).update(played, 0)
    assert metrics["train/logprob_gap"] < 1e-4 and math.isfinite(metrics["train/grad_norm"])
    assert metrics["train/updates"] == 1
