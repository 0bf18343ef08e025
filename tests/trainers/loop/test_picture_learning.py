"""Learning from pictures alone: answers are where something lies in a picture, and follow the picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from turngym.agents.core import Request
from turngym.agents.models.embedded import EmbeddedConfig, build_tokenizer
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vision.agent import VisionAgent
from turngym.agents.models.vision.embedded import build_vision_model, with_pictures
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.settings.supervised import SupervisedConfig

torch.set_num_threads(1)
CELL, SIDE = 16, 4
PLACES = [f"{row}{column}" for row in "abcd" for column in "wxyz"]


def board(place: int) -> NDArray[np.uint8]:
    """Return a picture whose cells are all alike but one."""
    cells = np.full((SIDE * CELL, SIDE * CELL, 3), 220, np.uint8)
    top, left = CELL * (place // SIDE), CELL * (place % SIDE)
    cells[top + 3 : top + 13, left + 5 : left + 11] = (200, 40, 40)
    return cells


def asked(shown: list[int]) -> list[Request]:
    return [Request(slot, slot, 0, "", {}, "", board(place)) for slot, place in enumerate(shown)]


def agent_of(model: LanguageModel) -> VisionAgent:
    assert model.pictures is not None
    sampling = Sampling(temperature=0.0, max_new_tokens=4)
    return VisionAgent(model, model.pictures, PromptConfig(instructions=False, pictures_only=True), sampling)


def answers(model: LanguageModel, shown: list[int]) -> list[str]:
    """Return what the model writes about some pictures, most likely tokens first."""
    return [decision.action for decision in agent_of(model).act(asked(shown))]


def demonstration(agent: VisionAgent, request: Request, place: int) -> Trajectory:
    prompt = agent.next_prompt(request)
    text = agent.format_of(request).write(PLACES[place])
    ids = (*agent.builder.answer(text), int(agent.model.tokenizer.eos_token_id))
    turn = Turn("", "", PLACES[place], prompt_ids=prompt, completion_ids=ids, logprobs=(0.0,) * len(ids))
    return Trajectory(
        EpisodeSpec(request.episode, 0), "pictures", "", [replace(turn, pictures=agent.pictures_of(request))]
    )


@pytest.fixture(scope="module")
def taught() -> LanguageModel:
    """Return a model that was shown each picture with its answer a hundred times."""
    config = EmbeddedConfig(hidden_size=48, layers=2, heads=2, vocabulary=300)
    tokenizer = with_pictures(build_tokenizer(PLACES, 300))
    network, takes = build_vision_model(tokenizer, config, seed=0)
    model = LanguageModel(network, tokenizer, "tiny", pictures=takes)
    agent = agent_of(model)
    data = [demonstration(agent, request, place) for place, request in enumerate(asked(list(range(16))))]
    settings = SupervisedConfig(learning_rate=3e-3, batch_size=16)
    learner = SupervisedLearner(network, data, settings, 0, layout_for(model, "rows"))
    for _ in range(100):
        learner.run_epoch()
    return model


def test_sixteen_pictures_are_learnt_by_heart(taught: LanguageModel) -> None:
    assert answers(taught, list(range(16))) == PLACES


def test_answers_follow_the_picture(taught: LanguageModel) -> None:
    shown = [int(place) for place in np.random.default_rng(0).permutation(16)]
    assert answers(taught, shown) == [PLACES[place] for place in shown]
