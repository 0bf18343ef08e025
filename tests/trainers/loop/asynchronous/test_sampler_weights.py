"""The sampler's weights: a completion has one version, turns know theirs, and nothing old is computed with."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from small import agent_of, small_model

from turngym.agents.core import Request
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.generate import generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import Sampler
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.agents.trajectory import Turn
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.loop.asynchronous.agent import VersionedAgent
from turngym.trainers.loop.asynchronous.weights import SamplerWeights

SAMPLING = Sampling(max_new_tokens=5)


def changed(model: LanguageModel, seed: int) -> None:
    """Change all weights that are trained, in place as an optimiser does."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.network.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)


def scored(model: LanguageModel, prompt: tuple[int, ...], episode: int, turn: int) -> Any:
    """Sample a completion from scratch."""
    uniforms = [turn_uniforms(0, 0, episode, turn, SAMPLING.max_new_tokens)]
    return generate(model.network, [prompt], uniforms, SAMPLING, model.stop_ids)[0]


def request(episode: int, turn: int, text: str) -> Request:
    return Request(episode, episode, turn, text, {"anchor": "", "legal_actions": ()}, "")


def test_only_the_call_that_takes_them_over_changes_the_sampler() -> None:
    model = small_model()
    weights = SamplerWeights(model)
    before = {name: value.clone() for name, value in weights.model.network.state_dict().items()}
    changed(model, 1)
    weights.publish(model.network, 1)
    changed(model, 2)
    assert all(torch.equal(value, before[name]) for name, value in weights.model.network.state_dict().items())
    weights.publish(model.network, 2)
    assert weights.version == 0 and weights.refresh() == 2
    own = model.network.state_dict()
    assert all(torch.equal(value, own[name]) for name, value in weights.model.network.state_dict().items())


def test_adapters_are_copied_and_the_frozen_model_is_shared() -> None:
    model = add_adapters(small_model(), 2, 0)
    weights = SamplerWeights(model)
    own = {id(parameter) for parameter in model.network.parameters() if not parameter.requires_grad}
    shared = [parameter for parameter in weights.model.network.parameters() if id(parameter) in own]
    assert len(shared) == len(own)
    changed(model, 1)
    weights.publish(model.network, 1)
    weights.refresh()
    for mine, theirs in zip(model.network.parameters(), weights.model.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("mode", ["conversation", "window"])
def test_every_turn_is_written_by_the_weights_of_its_version_and_no_key_of_older_ones(mode: str) -> None:
    model = small_model()
    weights = SamplerWeights(model)
    agent = agent_of(weights.model, mode)
    assert isinstance(agent.generate, Sampler) and (agent.generate._sessions is None) == (mode == "window")
    player = VersionedAgent(agent, weights.refresh)
    for turn in range(4):
        if turn in (1, 3):
            changed(model, turn)
            weights.publish(model.network, turn)
        [decision] = player.act([request(7, turn, f"player {turn} {turn} box 3 3")])
        assert decision.policy_version == (0, 1, 1, 3)[turn]
        expected = scored(weights.model, decision.prompt_ids, 7, turn)
        assert decision.completion_ids == expected.ids
        np.testing.assert_allclose(decision.logprobs, expected.logprobs, atol=1e-5)


@pytest.fixture
def publisher() -> Iterator[tuple[LanguageModel, SamplerWeights, dict[int, LanguageModel]]]:
    """A thread that publishes new weights without a pause, and the model of each version."""
    model = small_model()
    weights = SamplerWeights(model)
    versions = {0: model.with_network(SamplerWeights(model).model.network)}
    stop = threading.Event()

    def publish() -> None:
        version = 0
        while not stop.is_set() and version < 300:
            version += 1
            changed(model, version)
            versions[version] = model.with_network(SamplerWeights(model).model.network)
            weights.publish(model.network, version)

    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    yield model, weights, versions
    stop.set()
    thread.join(120)


def test_weights_never_change_inside_a_completion(
    publisher: tuple[LanguageModel, SamplerWeights, dict[int, LanguageModel]],
) -> None:
    _, weights, versions = publisher
    player = VersionedAgent(agent_of(weights.model), weights.refresh)
    seen = set()
    for episode in range(15):
        for decision in player.act([request(2 * episode + k, 0, "player 2 3 box 3 3") for k in range(2)]):
            seen.add(decision.policy_version)
            network = versions[decision.policy_version]
            ids = decision.prompt_ids + decision.completion_ids
            with torch.no_grad():
                logits = network.network(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
            start = len(decision.prompt_ids)
            found = [float(logits[start + k - 1, token]) for k, token in enumerate(decision.completion_ids)]
            np.testing.assert_allclose(found, decision.logprobs, atol=1e-4)
    assert len(seen) > 3, "the weights changed meanwhile"


def written(agent: ModelAgent, texts: list[str]) -> list[Turn]:
    found = []
    for number, text in enumerate(texts):
        [decision] = agent.act([request(3, number, text)])
        ids = decision.prompt_ids, decision.completion_ids, decision.logprobs
        found.append(Turn(text, "", decision.action, decision.completion, *ids, policy_version=5))
    return found


@pytest.mark.parametrize("mode", ["conversation", "window"])
def test_turns_that_were_written_before_are_taken_over_and_remembered(mode: str) -> None:
    model, texts = small_model(), ["player 1 1", "player 1 2", "player 1 3"]
    turns = written(agent_of(model, mode, history=2), texts)
    player = VersionedAgent(agent_of(model, mode, history=2), lambda: 9)
    player.expect(3, turns[:2])
    found = [player.act([request(3, number, text)])[0] for number, text in enumerate(texts)]
    assert [decision.policy_version for decision in found] == [5, 5, 9] and player.taken_over == 2
    assert [decision.completion_ids for decision in found] == [turn.completion_ids for turn in turns]
    assert [decision.prompt_ids for decision in found] == [turn.prompt_ids for turn in turns]


def test_an_episode_that_shows_something_else_goes_on_from_there_with_new_turns() -> None:
    model = small_model()
    turns = written(agent_of(model, "conversation"), ["player 1 1", "player 1 2", "player 1 3"])
    player = VersionedAgent(agent_of(model, "conversation"), lambda: 9)
    player.expect(3, turns)
    found = [player.act([request(3, n, t)])[0] for n, t in enumerate(["player 1 1", "box 4 4", "player 1 3"])]
    assert [decision.policy_version for decision in found] == [5, 9, 9]
    assert (player.taken_over, player.diverged) == (1, 1)
