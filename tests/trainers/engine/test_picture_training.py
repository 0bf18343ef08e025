"""Training a model that sees: the pictures of a prompt go through the network with it."""

from __future__ import annotations

import dataclasses
from typing import cast

import pytest
import torch
from vision_models import embedded_model, merging_model

from turngym.agents import play_groups
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.envs.vector import make_vec
from turngym.trainers import build, prepare
from turngym.trainers.core.rows import build_batch, build_rows
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.scoring import Critic

torch.set_num_threads(1)


@pytest.fixture
def model() -> LanguageModel:
    return embedded_model()


@pytest.fixture(params=[embedded_model, merging_model])
def either(request: pytest.FixtureRequest) -> LanguageModel:
    made: LanguageModel = request.param()
    return made


def played(model: LanguageModel, mode: str = "window", groups: int = 2) -> list[Trajectory]:
    vector = make_vec("turngym/Sokoban-v0", 4, autoreset_mode="disabled", image=True, max_turns=2)
    settings = AgentSettings(prompt={"mode": mode}, max_new_tokens=4)
    try:
        return play_groups(vector, model, groups=groups, group_size=2, settings=settings, final_prompts=True)
    finally:
        vector.close()


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_log_probabilities_are_those_of_the_sampler(either: LanguageModel, mode: str) -> None:
    batch = prepare(played(either, mode), either, build("grpo", {"grpo": {"kl_coef": 0.0}}))
    gaps = [(part.logprobs - part.old_logprobs)[part.action_mask].abs().max() for part in batch.micro_batches()]
    assert float(torch.stack(gaps).max().detach()) < 1e-4
    assert batch.num_rows == (4 if mode == "conversation" else 8)


def test_another_picture_is_another_sequence(model: LanguageModel) -> None:
    episodes = played(model)
    first = episodes[0].turns[0]
    twin = dataclasses.replace(episodes[0], turns=[dataclasses.replace(first)])
    other = dataclasses.replace(episodes[0], turns=[dataclasses.replace(first, pictures=episodes[2].turns[0].pictures)])
    single = dataclasses.replace(episodes[0], turns=[first])
    assert first.pictures != other.turns[0].pictures
    assert len(build_batch(build_rows([single, twin], False)).sequences) == 1
    assert len(build_batch(build_rows([single, other], False)).sequences) == 2


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_an_update_reaches_the_vision_encoder(model: LanguageModel, algorithm: str) -> None:
    learner = Learner(model, build(algorithm), UpdateConfig(learning_rate=1e-3))
    episodes = played(model)
    for number, episode in enumerate(episodes):  # some must be better than others
        for turn in episode.turns:
            turn.reward = float(number % 2)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    metrics = learner.update(episodes, 0)
    changed = {name for name, value in model.network.state_dict().items() if not torch.equal(before[name], value)}
    assert metrics["train/logprob_gap"] < 1e-4
    assert any("visual" in name for name in changed) and any("layers" in name for name in changed - {"visual"})


def test_a_critic_sees_the_picture(model: LanguageModel) -> None:
    critic = Critic(model.network)
    with torch.no_grad():
        critic.head.weight.fill_(0.1)
    found = prepare(played(model), model, build("ppo"), critic=critic)
    values = found.table.turn_value
    assert values is not None and len(values.unique()) > 2
    assert all(len(episode.final_pictures) == 1 for episode in found.trajectories if episode.final_prompt_ids)


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_a_sampled_placeholder_is_no_picture(model: LanguageModel, mode: str) -> None:
    """A model's bad output is never an error: sampler and trainer feed a neutral token for it."""
    assert model.pictures is not None
    likely = played(model, mode)[0].turns[0].completion_ids[0]
    words = cast("torch.Tensor", model.network.get_input_embeddings().weight)
    with torch.no_grad():  # the head is tied, so that the placeholder is as likely as a token that was sampled
        words[model.pictures.placeholder] = 1.5 * words[likely]
    episodes = played(model, mode)
    sampled = [token for episode in episodes for turn in episode.turns for token in turn.completion_ids]
    assert model.pictures.placeholder in sampled
    batch = prepare(episodes, model, build("grpo", {"grpo": {"kl_coef": 0.0}}))
    gaps = [(part.logprobs - part.old_logprobs)[part.action_mask].abs().max() for part in batch.micro_batches()]
    assert float(torch.stack(gaps).max().detach()) < 1e-4


def test_pictures_survive_json(model: LanguageModel) -> None:
    for episode in played(model, groups=1):
        assert trajectory_from_json(trajectory_to_json(episode)).turns[0].pictures == episode.turns[0].pictures
