"""What prompts say after an answer, as a method's loss reads it: each token once, wherever sequences are cut."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from layout_batches import exact_norms, wide_model
from required import with_required
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.update_config import LayoutName
from turngym.trainers.engine.prepared import PreparedBatch, prepare
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.settings.config import TrainConfig


@pytest.fixture(scope="module", autouse=True)
def _exact() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        yield


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return wide_model()


def turn(prompt: tuple[int, ...], completion: tuple[int, ...]) -> Turn:
    return Turn(
        "", "", "", prompt_ids=prompt, completion_ids=completion, logprobs=(-1.0,) * len(completion), reward=1.0
    )


def played() -> list[Trajectory]:
    """A conversation of three turns, one repeated, and windows; observations are 20, 21 and 30."""
    first, second = turn((1, 2, 3), (10, 11)), turn((1, 2, 3, 10, 11, 20, 21), (12,))
    third = turn((1, 2, 3, 10, 11, 20, 21, 12, 30), (13, 14))
    windows = [turn((1, 2), (10,)), turn((1, 40, 41), (11,)), turn((1, 40, 41, 11), ())]
    ended = turn((5, 6), ())
    whole = [[first, second, third], [first, second], windows, [ended, turn((5, 6, 7, 8), (9,))]]
    return [Trajectory(EpisodeSpec(k, 0, 0), turns=turns, terminated=True) for k, turns in enumerate(whole)]


def prepared(
    model: LanguageModel, episodes: list[Trajectory], layout: LayoutName = "rows", merge: bool = True, size: int = 0
) -> PreparedBatch:
    method = build("reinforce+echo", {"reinforce": {"normalisation": "trajectory"}, "echo": {"coef": 0.5}})
    assert Need.OBSERVATIONS in method.needs
    return prepare(episodes, model, method, layout=layout, merge_rows=merge, max_tokens=size)


def gradient(model: LanguageModel, batch: PreparedBatch, episodes: list[Trajectory]) -> tuple[Tensor, float]:
    method = build("reinforce+echo", {"reinforce": {"normalisation": "trajectory"}, "echo": {"coef": 0.5}})
    model.network.zero_grad()
    surprise = 0.0
    for inputs in batch.micro_batches():
        output = method.loss(inputs)
        output.total(inputs).backward()
        surprise += float(output.metrics["observation_surprise"].total(inputs))
    found = [p.grad.flatten() for p in model.network.parameters() if p.grad is not None]
    return torch.cat(found), surprise


def test_observations_are_those_after_an_answer_and_no_first_prompt(model: LanguageModel) -> None:
    """What follows a turn without a token is one too; a new window is none."""
    batch = prepared(model, played())
    assert batch.num_observed == (2 + 1) + 2 + 0 + 2
    found = [inputs.observed for inputs in batch.micro_batches()]
    assert sum(int(each.sum()) for each in found if each is not None) == batch.num_observed
    total = sum(float(inputs.weights["observation"].sum()) for inputs in batch.micro_batches(scale=3.0))
    assert total == pytest.approx(3.0)


def test_the_surprise_is_the_mean_cross_entropy_of_observed_tokens(model: LanguageModel) -> None:
    episodes = played()[:1]
    ids = torch.tensor([[1, 2, 3, 10, 11, 20, 21, 12, 30]])
    with torch.no_grad():
        logprobs = model.network(ids).logits.log_softmax(-1)
    expected = -sum(float(logprobs[0, place - 1, ids[0, place]]) for place in (5, 6, 8)) / 3
    assert gradient(model, prepared(model, episodes), episodes)[1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("layout", "merge", "size"), [("packed", True, 0), ("tree", True, 0), ("rows", False, 0), ("rows", True, 10)]
)
def test_the_gradient_does_not_depend_on_how_sequences_are_cut(
    model: LanguageModel, layout: LayoutName, merge: bool, size: int
) -> None:
    episodes = played()
    expected, surprise = gradient(model, prepared(model, episodes), episodes)
    found, again = gradient(model, prepared(model, episodes, layout, merge, size), episodes)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-8)
    assert again == pytest.approx(surprise, abs=1e-10)


def test_episodes_without_rewards_still_teach_what_the_environment_says(model: LanguageModel) -> None:
    unpaid = [replace(each, turns=[replace(turn, reward=0.0) for turn in each.turns]) for each in played()]
    found, _ = gradient(model, prepared(model, unpaid), unpaid)
    assert float(found.norm()) > 0


def test_a_method_that_does_not_ask_reads_sampled_tokens_alone(model: LanguageModel) -> None:
    batch = prepare(played(), model, build("reinforce"))
    for inputs in batch.micro_batches():
        assert inputs.observed is None and "observation" not in inputs.weights
        assert inputs.logprobs.shape[1] == int(inputs.action_mask.sum(-1).max())


def test_prompts_that_add_nothing_are_refused_before_anything_is_played() -> None:
    config = TrainConfig(algorithm="grpo+echo")
    with pytest.raises(ConfigError, match=r"pass --rollout\.prompt\.mode conversation"):
        build_algorithm(config)
    assert Need.OBSERVATIONS in build_algorithm(with_required(config)).needs
