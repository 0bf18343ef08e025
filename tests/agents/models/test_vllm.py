"""The backend vllm with a real vLLM: the numbers of transformers, seeds, stops, weights that are really replaced."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small import small_model

from turngym.agents.models.generate import Completion, generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling, turn_uniforms

pytestmark = pytest.mark.integration
pytest.importorskip("vllm", reason="vllm is in .venvs/vllm only: run make test-integration")

from turngym.agents.models.vllm.config import VllmConfig  # noqa: E402
from turngym.agents.models.vllm.sampler import VllmSampler  # noqa: E402
from turngym.errors import ConfigError, ModelError  # noqa: E402

SMALL = VllmConfig(max_model_len=512, kv_cache_gib=0.05)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return small_model(hidden=64)


@pytest.fixture(scope="module")
def other() -> LanguageModel:
    return small_model(seed=5, hidden=64)


@pytest.fixture(scope="module")
def folder(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    model.save(path)
    return path


@pytest.fixture(scope="module")
def started(folder: Path, model: LanguageModel) -> Iterator[tuple[VllmSampler, dict[str, bool]]]:
    """The sampler, and what its start and first answer left as it was."""
    torch.manual_seed(3)
    torch_state, numpy_state, threads = torch.get_rng_state(), str(np.random.get_state()), torch.get_num_threads()
    sampler = VllmSampler(str(folder), SMALL, model.stop_ids)
    sampler.generate([[5, 6]], uniforms_of(1), Sampling(max_new_tokens=2))
    kept = {
        "torch": torch.equal(torch.get_rng_state(), torch_state),
        "numpy": str(np.random.get_state()) == numpy_state,
        "threads": torch.get_num_threads() == threads,
    }
    yield sampler, kept
    sampler.close()


@pytest.fixture(scope="module")
def shared(started: tuple[VllmSampler, dict[str, bool]]) -> VllmSampler:
    return started[0]


@pytest.fixture
def sampler(shared: VllmSampler, model: LanguageModel) -> VllmSampler:
    """The sampler with the model's own weights, whatever the test before loaded."""
    shared.load_weights(model.network.state_dict())
    return shared


def prompts_of(model: LanguageModel, count: int = 12) -> list[tuple[int, ...]]:
    texts = ["player 2 3", "box 3 3 goal 4 1", "player 2 3", "wall", "player 2 3 box 3 3 goal 4 1 wall 1 2 " * 4]
    return [tuple(model.tokenizer.encode(texts[i % len(texts)])) for i in range(count)]


def uniforms_of(count: int, length: int = 8) -> list[np.ndarray]:
    return [turn_uniforms(7, 0, episode, 0, length) for episode in range(count)]


@torch.inference_mode()
def logprobs_of(model: LanguageModel, prompt: Sequence[int], ids: Sequence[int], temperature: float) -> list[float]:
    """What transformers says of the tokens that vLLM sampled."""
    logits = model.network(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].float()
    rows = torch.log_softmax(logits / (temperature or 1.0), -1)
    return [float(row[token]) for row, token in zip(rows, ids, strict=True)]


def largest_gap(
    model: LanguageModel, prompts: Sequence[Sequence[int]], found: Sequence[Completion], temperature: float
) -> float:
    gaps = [
        np.abs(np.array(completion.logprobs) - logprobs_of(model, prompt, completion.ids, temperature)).max()
        for prompt, completion in zip(prompts, found, strict=True)
    ]
    return float(max(gaps))


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_logprobs_are_the_samplers_own(sampler: VllmSampler, model: LanguageModel, temperature: float) -> None:
    prompts = prompts_of(model)
    found = sampler.generate(prompts, uniforms_of(len(prompts)), Sampling(temperature, max_new_tokens=8))
    assert largest_gap(model, prompts, found, temperature) < 1e-4
    if temperature == 0.7:
        assert largest_gap(model, prompts, found, 1.0) > 0.1, "negative oracle: untempered ones are far away"


def test_greedy_tokens_are_those_of_transformers(sampler: VllmSampler, model: LanguageModel) -> None:
    prompts, sampling = prompts_of(model), Sampling(0.0, max_new_tokens=8)
    found = sampler.generate(prompts, uniforms_of(len(prompts)), sampling)
    expected = generate(model.network, prompts, uniforms_of(len(prompts)), sampling, model.stop_ids)
    assert [c.ids for c in found] == [c.ids for c in expected]


def test_sampled_shares_follow_the_distribution_at_the_temperature(sampler: VllmSampler, model: LanguageModel) -> None:
    prompt, count = prompts_of(model)[1], 6000
    found = sampler.generate([prompt] * count, uniforms_of(count, 1), Sampling(0.25, max_new_tokens=1))
    shares = torch.bincount(torch.tensor([c.ids[0] for c in found]), minlength=len(model.tokenizer)) / count
    with torch.inference_mode():
        logits = model.network(torch.tensor([prompt])).logits[0, -1]
    expected = torch.softmax(logits / 0.25, -1)
    assert float((shares - expected).abs().max()) < 5 * float((expected * (1 - expected) / count).max()) ** 0.5
    assert float((shares - torch.softmax(logits, -1)).abs().max()) > 0.05, "negative oracle: another temperature"


def test_a_completion_depends_on_its_own_numbers_and_not_on_its_batch(
    sampler: VllmSampler, model: LanguageModel
) -> None:
    prompts, sampling = prompts_of(model), Sampling(1.0, max_new_tokens=8)
    draws = uniforms_of(len(prompts))
    together = sampler.generate(prompts, draws, sampling)
    alone = [sampler.generate([p], [u], sampling)[0] for p, u in zip(prompts, draws, strict=True)]
    backwards = sampler.generate(prompts[::-1], draws[::-1], sampling)[::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.ids == two.ids == three.ids
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-4)
    assert together[0].ids != together[2].ids, "one prompt, other numbers"


@pytest.mark.parametrize("folder_says", [False, True])
def test_a_completion_ends_with_the_first_end_token_and_holds_it(
    sampler: VllmSampler, model: LanguageModel, monkeypatch: pytest.MonkeyPatch, folder_says: bool
) -> None:
    """Only the tokens that we name stop it: not the folder's own one where it is not among them."""
    own = set(model.stop_ids)
    stop = frozenset(range(0, 320, 4)) - own | (own if folder_says else set())
    monkeypatch.setattr(sampler, "stop_ids", stop)
    prompts = prompts_of(model, 60)
    found = sampler.generate(prompts, uniforms_of(60), Sampling(1.0, max_new_tokens=40))
    assert len({len(c.ids) for c in found}) > 5
    for completion in found:
        assert len(completion.ids) == len(completion.logprobs)
        assert completion.ids[-1] in stop or len(completion.ids) == 40
        assert not stop & set(completion.ids[:-1])


def test_a_nucleus_leaves_the_likeliest_tokens_and_logs_their_shares(
    sampler: VllmSampler, model: LanguageModel
) -> None:
    prompt = prompts_of(model)[0]
    found = sampler.generate([prompt] * 200, uniforms_of(200, 1), Sampling(1.0, top_p=0.3, max_new_tokens=1))
    logged = {c.ids[0]: np.exp(c.logprobs[0]) for c in found}
    whole = {token: np.exp(logprobs_of(model, prompt, [token], 1.0)[0]) for token in logged}
    mass = np.mean([whole[token] / share for token, share in logged.items()])
    assert 0.3 <= mass < 0.5
    for token, share in logged.items():
        assert share * mass == pytest.approx(whole[token], rel=1e-3)


# Beside others.


def test_starting_it_changes_nothing_for_others(started: tuple[VllmSampler, dict[str, bool]]) -> None:
    assert started[1] == {"torch": True, "numpy": True, "threads": True}
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    assert torch.get_num_threads() == threads + 1, "vLLM puts a function that does nothing into its place"
    torch.set_num_threads(threads)


def test_two_models_at_a_time_are_refused(sampler: VllmSampler, folder: Path, model: LanguageModel) -> None:
    """They would share what vLLM has once, and the end of the one breaks the other."""
    with pytest.raises(ConfigError, match=r"holds .* already.*end_vllm.*openai:MODEL@URL"):
        VllmSampler(str(folder), SMALL, model.stop_ids)
    assert sampler.generate([[5, 6]], uniforms_of(1), Sampling(max_new_tokens=2))


def test_the_weights_format_is_that_of_the_folder(shared: VllmSampler) -> None:
    """vLLM's own choice for float32 would be a shorter one."""
    assert shared._llm.llm_engine.model_config.dtype == torch.float32


# New weights.


def test_new_weights_are_used_and_the_old_ones_forgotten(
    sampler: VllmSampler, model: LanguageModel, other: LanguageModel
) -> None:
    prompts, sampling = prompts_of(model), Sampling(1.0, max_new_tokens=8)
    draws = uniforms_of(len(prompts))
    before = sampler.generate(prompts, draws, sampling)
    assert largest_gap(other, prompts, before, 1.0) > 0.1
    assert sampler.stale(dict(other.network.state_dict()))
    sampler.load_weights(other.network.state_dict())
    after = sampler.generate(prompts, draws, sampling)
    assert largest_gap(other, prompts, after, 1.0) < 1e-4
    assert not sampler.stale(dict(other.network.state_dict()))


def test_an_update_of_one_step_is_seen(sampler: VllmSampler, model: LanguageModel) -> None:
    """Learning rates are small: what is stale after one step differs in the last digits only."""
    stepped = small_model(hidden=64).network
    with torch.no_grad():
        for parameter in stepped.parameters():
            parameter.add_(1e-6 * torch.sign(parameter))
    stale = sampler.stale(dict(stepped.state_dict()))
    assert {"lm_head.weight", "model.layers.0.self_attn.qkv_proj.weight", "model.layers.1.mlp.down_proj.weight"} <= set(
        stale
    )
    sampler.load_weights(stepped.state_dict())
    assert not sampler.stale(dict(stepped.state_dict()))


def test_a_head_that_silently_stays_is_seen(sampler: VllmSampler, other: LanguageModel) -> None:
    """The fault itself, planted: without the head by its own name, vLLM continues with the old one and says nothing."""
    whole = dict(other.network.state_dict())
    headless = {name: tensor for name, tensor in whole.items() if name != "lm_head.weight"}
    sampler._reload(headless)
    prompts = prompts_of(other)
    found = sampler.generate(prompts, uniforms_of(len(prompts)), Sampling(1.0, max_new_tokens=8))
    assert largest_gap(other, prompts, found, 1.0) > 0.1
    assert sampler.stale(whole) == ["lm_head.weight"]


def test_weights_that_do_not_take_are_an_error(
    sampler: VllmSampler, other: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    reload = sampler._reload
    monkeypatch.setattr(
        sampler, "_reload", lambda whole: reload({k: v for k, v in whole.items() if "lm_head" not in k})
    )
    with pytest.raises(ModelError, match=r"old weights of lm_head\.weight"):
        sampler.load_weights(other.network.state_dict())


def test_the_content_of_a_folder_is_taken_although_it_has_no_head(
    sampler: VllmSampler, other: LanguageModel, tmp_path: Path
) -> None:
    other.save(tmp_path)
    content = load_file(tmp_path / "model.safetensors")
    assert "lm_head.weight" not in content
    sampler.load_weights(content)
    prompts = prompts_of(other)
    found = sampler.generate(prompts, uniforms_of(len(prompts)), Sampling(1.0, max_new_tokens=8))
    assert largest_gap(other, prompts, found, 1.0) < 1e-4


def test_weights_of_another_model_are_refused(sampler: VllmSampler, model: LanguageModel) -> None:
    with pytest.raises(ModelError, match=r"another model: .* is \(32,\), expected \(64,\)|is \(324, 32\), expected"):
        sampler.load_weights(small_model(hidden=32).network.state_dict())
    whole = model.network.state_dict()
    with pytest.raises(ModelError, match=r"model\.norm\.weight is missing"):
        sampler.load_weights({name: tensor for name, tensor in whole.items() if name != "model.norm.weight"})
    found = sampler.generate(prompts_of(model), uniforms_of(12), Sampling(max_new_tokens=8))
    assert largest_gap(model, prompts_of(model), found, 1.0) < 1e-4, "nothing is half new"


# Errors.


def test_a_prompt_that_does_not_fit_is_an_error_that_says_how_to_go_on(sampler: VllmSampler) -> None:
    with pytest.raises(ModelError, match=r"510 tokens and 8 new ones .* max_model_len=512: raise it"):
        sampler.generate([[5] * 510], uniforms_of(1), Sampling(max_new_tokens=8))
    assert len(sampler.generate([[5] * 504], uniforms_of(1), Sampling(0.0, max_new_tokens=8))[0].ids) <= 8


def test_what_an_interrupt_left_under_way_is_not_answered_later(
    sampler: VllmSampler, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts, sampling = prompts_of(model), Sampling(0.0, max_new_tokens=8)
    engine = sampler._llm.llm_engine
    step, calls = engine.step, iter(range(100))

    def interrupted() -> object:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return step()

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(engine, "step", interrupted)
        sampler.generate(prompts, uniforms_of(len(prompts)), sampling)
    found = sampler.generate(prompts[1:3], uniforms_of(2), sampling)
    expected = generate(model.network, prompts[1:3], uniforms_of(2), sampling, model.stop_ids)
    assert [c.ids for c in found] == [c.ids for c in expected]
