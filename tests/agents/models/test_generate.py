"""Sampling: equal to row-by-row sampling from the whole distribution, and exactly logged."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_model

from turngym.agents.models.generate import Completion, Memo, choose, generate, sampling_logprobs
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.mixture import mixed_model
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.errors import ConfigError
from turngym.trainers.engine.adapters import adapters_off, add_adapters


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model()


def prompts_of(model: LanguageModel) -> list[tuple[int, ...]]:
    texts = ["player 2 3", "box 3 3 goal 4 1", "player 2 3", "wall", "player 2 3 box 3 3 goal 4 1 wall 1 2"]
    return [tuple(model.tokenizer.encode(text)) for text in texts]


def uniforms_of(count: int, length: int) -> list[np.ndarray]:
    return [turn_uniforms(7, 0, episode, 0, length) for episode in range(count)]


@torch.inference_mode()
def one_by_one(model: LanguageModel, prompt: tuple[int, ...], uniforms: np.ndarray, sampling: Sampling) -> Completion:
    """The slow way: the whole sequence through the network for each token, no cache, no batch, no padding."""
    ids: list[int] = []
    logprobs: list[float] = []
    for position in range(sampling.max_new_tokens):
        logits = model.network(torch.tensor([[*prompt, *ids]])).logits[0, -1]
        distribution = torch.log_softmax(logits / (sampling.temperature or 1.0), -1)
        if sampling.temperature == 0:
            token = int(distribution.argmax())
        else:
            cumulative = distribution.double().exp().cumsum(0)
            token = int((cumulative <= uniforms[position] * cumulative[-1]).sum())
        ids.append(token)
        logprobs.append(float(distribution[token]))
        if token in model.stop_ids:
            break
    return Completion(tuple(ids), tuple(logprobs))


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("max_rows", [1, 2, 512])
def test_batched_sampling_equals_sampling_one_by_one(model: LanguageModel, temperature: float, max_rows: int) -> None:
    sampling = Sampling(temperature, max_new_tokens=6)
    prompts, uniforms = prompts_of(model), uniforms_of(5, 6)
    found = generate(model.network, prompts, uniforms, sampling, model.stop_ids, max_rows)
    for prompt, draws, completion in zip(prompts, uniforms, found, strict=True):
        expected = one_by_one(model, prompt, draws, sampling)
        assert completion.ids == expected.ids
        assert completion.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


def test_equal_prompts_with_other_numbers_split_off(model: LanguageModel) -> None:
    prompt = prompts_of(model)[0]
    found = generate(model.network, [prompt] * 40, uniforms_of(40, 3), Sampling(max_new_tokens=3), model.stop_ids)
    assert len({completion.ids for completion in found}) > 10


def test_a_completion_ends_with_the_first_end_token(model: LanguageModel) -> None:
    stop = frozenset(range(0, 340, 3))
    found = generate(model.network, prompts_of(model), uniforms_of(5, 50), Sampling(max_new_tokens=50), stop)
    for completion in found:
        assert completion.ids[-1] in stop
        assert not stop & set(completion.ids[:-1])


def test_sampled_shares_follow_the_distribution() -> None:
    """A sampler that ignores the temperature would give the second token 0.27 instead of 0.12 of the draws."""
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    distribution = sampling_logprobs(logits, 0.5).expand(20_000, -1)
    draws = torch.from_numpy(np.random.default_rng(0).random(20_000))
    tokens = choose(distribution, draws, Sampling(0.5))
    shares = torch.bincount(tokens, minlength=3) / 20_000
    torch.testing.assert_close(shares, torch.softmax(logits[0] / 0.5, -1), atol=0.01, rtol=0)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.floats(0, 1, exclude_max=True), st.floats(0.05, 1))
@settings(max_examples=200)
def test_top_p_keeps_the_smallest_set_that_reaches_it(logits: list[float], uniform: float, top_p: float) -> None:
    row = torch.log_softmax(torch.tensor([logits], dtype=torch.float64), -1)
    token = int(choose(row, torch.tensor([uniform]), Sampling(1.0, top_p)))
    more_likely = row.exp()[0][row[0] > row[0, token]].sum()
    assert more_likely < top_p + 1e-9


def test_a_draw_just_below_one_takes_no_impossible_token() -> None:
    row = torch.tensor([[0.0, -float("inf"), -float("inf")]])
    assert int(choose(row, torch.tensor([np.nextafter(1.0, 0.0)]), Sampling())) == 0


@pytest.mark.parametrize("key", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)])
def test_every_part_of_the_sampling_key_counts(key: tuple[int, int, int, int]) -> None:
    assert not np.array_equal(turn_uniforms(*key, 4), turn_uniforms(0, 0, 0, 0, 4))


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"temperature": -1.0}, "temperature must be 0"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, got 0"),
    ],
)
def test_sampling_settings_out_of_range_are_refused(settings_: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampling(**settings_)  # type: ignore[arg-type]


def test_a_memo_changes_no_token_and_saves_the_network(model: LanguageModel) -> None:
    memo, sampling = Memo(), Sampling(max_new_tokens=5)
    prompts = prompts_of(model)
    calls: list[int] = []
    handle = model.network.register_forward_pre_hook(lambda *_: calls.append(1))
    for repeat in range(3):
        uniforms = [turn_uniforms(repeat, 0, episode, 0, 5) for episode in range(5)]
        with_memo = generate(model.network, prompts, uniforms, sampling, model.stop_ids, memo=memo)
        without = generate(model.network, prompts, uniforms, sampling, model.stop_ids)
        assert [c.ids for c in with_memo] == [c.ids for c in without]
        for a, b in zip(with_memo, without, strict=True):
            assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)
    calls.clear()
    generate(model.network, prompts, uniforms, sampling, model.stop_ids, memo=memo)
    handle.remove()
    assert not calls, "everything asked for was known already"


def test_new_weights_or_another_temperature_empty_the_memo() -> None:
    """A stale distribution would let the policy act as it did before the update."""
    model, memo = small_model(), Memo()
    prompts, uniforms = prompts_of(model)[:1], uniforms_of(1, 2)

    def logprobs(temperature: float = 1.0) -> tuple[float, ...]:
        sampling = Sampling(temperature, max_new_tokens=1)
        return generate(model.network, prompts, uniforms, sampling, frozenset(), memo=memo)[0].logprobs

    first = logprobs()
    assert logprobs() == first
    assert logprobs(3.0) != first
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.mul_(1.5)
    assert logprobs() != first


def test_a_full_memo_takes_in_no_more(model: LanguageModel) -> None:
    row = 340 * 4
    memo = Memo(max_bytes=3 * row)
    generate(model.network, prompts_of(model), uniforms_of(5, 4), Sampling(max_new_tokens=4), frozenset(), memo=memo)
    assert len(memo) == 3


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rank", [0, 2])
def test_a_mixture_samples_in_proportion_to_both_and_logs_its_own_probabilities(temperature: float, rank: int) -> None:
    """With adapters the other network is the model without them."""
    ready: Callable[[], AbstractContextManager[None]] = nullcontext
    if rank:
        model = add_adapters(small_model(), rank, seed=0)
        torch.manual_seed(0)
        with torch.no_grad():
            for parameter in model.network.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter), alpha=0.3)
        other, ready = model.network, lambda: adapters_off(model.network)
    else:
        model, other = small_model(), small_model(seed=3).network
    mixed = mixed_model(model, other, 0.25, ready)
    assert mixed.generate is not None
    prompts, sampling = prompts_of(model), Sampling(temperature, max_new_tokens=4)
    uniforms = uniforms_of(len(prompts), 4)
    found = mixed.generate(prompts, uniforms, sampling)
    assert found == mixed.generate(prompts, uniforms, sampling), "the same numbers, the same completions"
    plain = generate(model.network, prompts, uniforms, sampling, model.stop_ids)
    assert [each.ids for each in found] != [each.ids for each in plain], "its draws are its own"
    for prompt, each in zip(prompts, found, strict=True):
        ids = torch.tensor([[*prompt, *each.ids]])
        with torch.no_grad():
            own = model.network(ids).logits[0, len(prompt) - 1 : -1]
            with ready():
                theirs = other(ids).logits[0, len(prompt) - 1 : -1]
        expected = ((0.75 * own + 0.25 * theirs) / temperature).log_softmax(-1)
        told = expected[range(len(each.ids)), list(each.ids)]
        torch.testing.assert_close(torch.tensor(each.logprobs), told, atol=1e-4, rtol=0)


def test_shares_of_a_mixture_follow_its_distribution() -> None:
    model, other = small_model(), small_model(seed=3).network
    mixed = mixed_model(model, other, 0.5)
    assert mixed.generate is not None
    prompt, count = prompts_of(model)[0], 4000
    found = mixed.generate([prompt] * count, uniforms_of(count, 1), Sampling(max_new_tokens=1))
    with torch.no_grad():
        logits = [network(torch.tensor([prompt])).logits[0, -1] for network in (model.network, other)]
    expected = ((logits[0] + logits[1]) / 2).softmax(-1)
    shares = torch.bincount(torch.tensor([each.ids[0] for each in found]), minlength=len(expected)) / count
    assert float((shares - expected).abs().sum()) / 2 < 0.15
    assert float((shares - expected).abs().max()) < 5 * float((expected.max() / count).sqrt())


def test_mixtures_that_cannot_be_sampled_are_refused(model: LanguageModel) -> None:
    with pytest.raises(ConfigError, match="weight of a mixture must be from 0 to 1"):
        mixed_model(model, model.network, 1.5)
    with pytest.raises(ConfigError, match="is sampled elsewhere"):
        mixed_model(mixed_model(model, model.network, 0.5), model.network, 0.5)
