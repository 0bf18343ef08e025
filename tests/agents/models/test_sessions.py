"""Kept keys and values: every token's log-probability is that of a fresh forward pass, whatever was played before."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from small import small_model
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from turngym.agents.models.completion import Completion
from turngym.agents.models.forward_pass import last_logits
from turngym.agents.models.generate import generate
from turngym.agents.models.kv_cache import CacheCounts, Sessions
from turngym.agents.models.kv_cache.memory import bytes_per_token, can_be_kept
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampler import Sampler, automatic_budget, memo_pays
from turngym.agents.players import AgentSettings
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError

WORDS = 300
STOP = frozenset(range(1, 7))
SHAPE: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.1,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def qwen(seed: int = 0, **more: Any) -> PreTrainedModel:
    torch.manual_seed(seed)
    network: PreTrainedModel = Qwen3ForCausalLM(Qwen3Config(head_dim=8, **{**SHAPE, **more})).eval()
    return network


def llama() -> PreTrainedModel:
    torch.manual_seed(1)
    network: PreTrainedModel = LlamaForCausalLM(LlamaConfig(**SHAPE)).eval()
    return network


def draws(seed: int, count: int, length: int = 10) -> list[np.ndarray]:
    return [np.random.default_rng((seed, i)).random(length) for i in range(count)]


def numbers(rng: random.Random, least: int, most: int) -> list[int]:
    return [rng.randrange(WORDS) for _ in range(rng.randrange(least, most))]


@torch.no_grad()
def fresh(network: PreTrainedModel, prompt: Sequence[int], completion: Completion, temperature: float) -> list[float]:
    """The log-probabilities of a completion by one forward pass without a cache, in eval mode."""
    training = network.training
    logits = network.eval()(torch.tensor([[*prompt, *completion.ids]])).logits[0, len(prompt) - 1 : -1]
    network.train(training)
    rows = torch.log_softmax(logits.float() / temperature, -1)
    return [float(row[token]) for row, token in zip(rows, completion.ids, strict=True)]


def gap(network: PreTrainedModel, prompts: Sequence[Sequence[int]], found: Sequence[Completion], t: float) -> float:
    pairs = zip(prompts, found, strict=True)
    return max(float(np.abs(np.subtract(fresh(network, p, c, t), c.logprobs)).max()) for p, c in pairs)


def change(rng: random.Random, histories: dict[int, list[int]], episode: int) -> None:
    """Begin anew, rewrite the history from some token on, continue another one's, or append."""
    own = histories[episode]
    what = rng.random()
    if what < 0.1 or len(own) > 150:
        histories[episode] = numbers(rng, 1, 60)
    elif what < 0.2:
        histories[episode] = own[: rng.randrange(1, len(own) + 1)] + numbers(rng, 3, 6)
    elif what < 0.3:
        histories[episode] = list(histories[rng.randrange(len(histories))])
    else:
        own.extend(numbers(rng, 1, 12))


@pytest.mark.parametrize(
    ("make", "budget", "max_rows", "draft_tokens"),
    [(qwen, 400, 512, 0), (llama, 700, 3, 6), (qwen, 2000, 512, 6), (llama, 10**6, 3, 0)],
)
def test_random_play_agrees_with_a_fresh_forward_at_every_token(
    make: Any, budget: int, max_rows: int, draft_tokens: int
) -> None:
    """Skipped turns, new episodes in used rows, rewritten histories, branches, evictions, moves and new weights."""
    rng, network = random.Random(budget), make()
    sessions = Sessions(network, STOP, budget, max_rows, draft_tokens)
    histories = {episode: numbers(rng, 1, 60) for episode in range(8)}
    for turn in range(12):
        playing = [episode for episode in histories if rng.random() < 0.8]
        rng.shuffle(playing)
        for episode in playing:
            change(rng, histories, episode)
        if turn == 6:
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.mul_(1.05)
        prompts = [list(histories[episode]) for episode in playing]
        found = sessions.complete(prompts, draws(turn, len(playing)), Sampling(0.8, 1.0, 10))
        assert gap(network, prompts, found, 0.8) < 5e-6
        assert sessions.store.memory.rows * (sessions.store.memory.columns + 1) <= budget
        for episode, completion in zip(playing, found, strict=True):
            histories[episode].extend(completion.ids)
    assert sessions.counts.reused and sessions.counts.forks
    assert bool(sessions.counts.evictions) == (budget < 2000)


@pytest.mark.parametrize("sampling", [Sampling(0.3, 1, 24, entropies=True), Sampling(0, 1, 24), Sampling(1, 0.4, 24)])
@pytest.mark.parametrize("rows", [1, 3])
def test_drafts_change_neither_tokens_nor_log_probabilities(rows: int, sampling: Sampling) -> None:
    """Small vocabularies repeat, so that drafts are accepted, refused, and cut by an end token or the limit."""
    network = qwen(vocab_size=12)
    plain, drafting = (Sessions(network, frozenset({1}), 10**5, draft_tokens=most) for most in (0, 8))
    for turn in range(6):
        prompts = [[random.Random(turn + i).randrange(2, 6) for _ in range(30)] for i in range(rows)]
        uniforms = draws(turn, rows, 24)
        for one, other in zip(
            plain.complete(prompts, uniforms, sampling), drafting.complete(prompts, uniforms, sampling), strict=True
        ):
            assert one.ids == other.ids
            assert one.logprobs == pytest.approx(other.logprobs, abs=5e-6)
            assert one.entropies == pytest.approx(other.entropies, abs=1e-5)
    assert 0 < drafting.counts.accepted < drafting.counts.drafted and not plain.counts.drafted


def test_tokens_are_those_of_a_fresh_prefill() -> None:
    network, rng = qwen(), random.Random(3)
    sessions, prompts = Sessions(network, STOP, 10**6), [numbers(rng, 20, 90) for _ in range(6)]
    for turn in range(4):
        uniforms = draws(turn, 6)
        kept = sessions.complete(prompts, uniforms, Sampling(max_new_tokens=10, entropies=True))
        anew = generate(network, prompts, uniforms, Sampling(max_new_tokens=10, entropies=True), STOP)
        for one, other, prompt in zip(kept, anew, prompts, strict=True):
            assert one.ids == other.ids
            assert one.logprobs == pytest.approx(other.logprobs, abs=5e-6)
            assert one.entropies == pytest.approx(other.entropies, abs=1e-5)
            prompt.extend([*one.ids, *numbers(rng, 1, 9)])


def test_a_group_computes_its_first_prompt_once() -> None:
    network, prompt = qwen(), numbers(random.Random(0), 50, 51)
    sessions = Sessions(network, frozenset(), 10**6)
    found = sessions.complete([prompt] * 8, draws(0, 8), Sampling(max_new_tokens=4))
    assert sessions.counts == CacheCounts(prefilled=50, reused=7 * 50, evictions=0, forks=7)
    assert gap(network, [prompt] * 8, found, 1.0) < 5e-6
    assert len({completion.ids for completion in found}) > 1


def test_prompts_with_a_common_beginning_compute_it_once() -> None:
    network, rng = qwen(), random.Random(0)
    rules = numbers(rng, 40, 41)
    prompts = [[*rules, word, *numbers(rng, 5, 6)] for word in range(4)]
    sessions = Sessions(network, frozenset(), 10**6)
    found = sessions.complete(prompts, draws(0, 4), Sampling(max_new_tokens=4))
    assert sessions.counts.prefilled == 46 + 3 * 6
    assert gap(network, prompts, found, 1.0) < 5e-6


def test_a_next_turn_feeds_only_what_is_new() -> None:
    network, prompt = qwen(), numbers(random.Random(0), 50, 51)
    sessions = Sessions(network, frozenset(), 10**6)
    found = sessions.complete([prompt], draws(0, 1), Sampling(max_new_tokens=4))[0]
    later = [*prompt, *found.ids, 7, 8, 9]
    sessions.complete([later], draws(1, 1), Sampling(max_new_tokens=4))
    assert sessions.counts == CacheCounts(prefilled=50 + 1 + 3, reused=53)  # the last token sampled was never fed


def test_sessions_are_opened_extended_and_closed() -> None:
    network = qwen()
    sessions = Sessions(network, frozenset(), 10**6)
    one, other = sessions.open([5, 6, 7]), sessions.open()
    sessions.extend(other, [8, 9])
    first = sessions.generate([one, other], draws(0, 2), Sampling(max_new_tokens=4))
    assert sessions.ids(one) == (5, 6, 7, *first[0].ids)
    sessions.extend(one, [10])
    again = sessions.generate([one], draws(1, 1), Sampling(max_new_tokens=4))
    assert gap(network, [(5, 6, 7, *first[0].ids, 10)], again, 1.0) < 5e-6
    assert sessions.counts.reused == 6
    sessions.close(one)
    assert sorted(sessions.store.slots.lengths.tolist()) == [0, 5]
    with pytest.raises(ConfigError, match=f"session {one} is not open"):
        sessions.extend(one, [1])


def test_waiting_requests_take_the_rows_of_finished_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two, a request begins as soon as one of the two has stopped, not when both have."""
    network = qwen()
    batches: list[int] = []
    sessions = Sessions(network, frozenset(range(0, WORDS, 4)), 10**6, max_rows=2)
    decode = sessions._forward.decode

    def noted(tokens: dict[int, int], *rest: Any) -> None:
        batches.append(len(tokens))
        decode(tokens, *rest)

    monkeypatch.setattr(sessions._forward, "decode", noted)
    prompts = [numbers(random.Random(i), 5, 9) for i in range(12)]
    found = sessions.complete(prompts, draws(0, 12, 40), Sampling(max_new_tokens=40))
    assert gap(network, prompts, found, 1.0) < 5e-6
    alone = [len(completion.ids) for completion in found]
    assert len(batches) < 0.75 * sum(alone) and batches.count(1) <= max(alone)


def test_new_weights_drop_everything_also_behind_the_version_counter() -> None:
    """``.data`` changes no version, but where the numbers lie; and a cast replaces them."""
    network, prompt = qwen(), numbers(random.Random(0), 30, 31)
    sessions = Sessions(network, frozenset(), 10**6)

    def check() -> None:
        found = sessions.complete([prompt], draws(0, 1), Sampling(max_new_tokens=4))
        assert gap(network, [prompt], found, 1.0) < 5e-6

    check()
    weight: Any = network.get_input_embeddings().weight
    with torch.no_grad():
        weight.mul_(1.5)
    check()
    weight.data = weight.data * 1.5
    check()
    torch.nn.Module.load_state_dict(network, qwen(seed=5).state_dict())
    check()
    assert sessions.counts.reused == 0


@pytest.mark.parametrize("kept", [True, False])
def test_layers_that_checkpoint_gradients_do_not_empty_the_cache(kept: bool) -> None:
    network, prompts = qwen(), [numbers(random.Random(i), 30, 31) for i in range(2)]
    network.activation_checkpointing_enable()
    network.train()
    frozen: Any = network.get_input_embeddings()
    frozen.eval()
    sampling = Sampling(max_new_tokens=5)
    sessions = Sessions(network, frozenset(), 10**6)
    if kept:
        found = sessions.complete(prompts, draws(0, 2), sampling)
    else:
        found = generate(network, prompts, draws(0, 2), sampling, frozenset())
    assert network.training and not frozen.training, "modes are as they were"
    assert gap(network, prompts, found, 1.0) < 5e-6


def test_long_prompts_are_prefilled_in_chunks() -> None:
    network = qwen(max_position_embeddings=4096)
    prompts = [numbers(random.Random(i), 1100 + i, 1101 + i) for i in range(2)] + [[3, 4, 5]]
    widths: list[int] = []
    network.get_input_embeddings().register_forward_pre_hook(lambda _, given: widths.append(given[0].shape[1]))
    sessions = Sessions(network, frozenset(), 10**6)
    found = sessions.complete(prompts, draws(0, 3), Sampling(max_new_tokens=3))
    assert max(widths) == 512
    assert gap(network, prompts, found, 1.0) < 5e-6


def test_eager_attention_and_bfloat16_give_the_numbers_of_a_fresh_forward() -> None:
    network, prompts = qwen(), [numbers(random.Random(i), 20 + i, 21 + i) for i in range(3)]
    network.set_attn_implementation("eager")
    found = Sessions(network, STOP, 10**6).complete(prompts, draws(0, 3), Sampling(max_new_tokens=6))
    assert gap(network, prompts, found, 1.0) < 5e-6
    low = qwen()
    torch.nn.Module.to(low, torch.bfloat16)
    found = Sessions(low, STOP, 10**6).complete(prompts, draws(0, 3), Sampling(max_new_tokens=6))
    assert gap(low, prompts, found, 1.0) < 0.1


def test_a_request_that_never_fits_is_refused_with_the_way_out() -> None:
    sessions = Sessions(qwen(), frozenset(), 40)
    with pytest.raises(ConfigError, match=r"51 tokens does not fit .* holds 40: raise --rollout\.cache-tokens"):
        sessions.complete([list(range(50))], draws(0, 1), Sampling(max_new_tokens=4))
    with pytest.raises(ConfigError, match=r"lower --rollout\.max-new-tokens"):
        sessions.complete([list(range(30))], draws(0, 1, 50), Sampling(max_new_tokens=50))
    assert sessions.complete([[1, 2, 3]], draws(0, 1), Sampling(max_new_tokens=4))[0].ids


def test_memory_is_given_back() -> None:
    network = qwen()
    sessions = Sessions(network, frozenset(), 10**6)
    sessions.complete([[1, 2, 3]], draws(0, 1), Sampling(max_new_tokens=4))
    memory = sessions.store.memory
    assert memory.bytes == memory.rows * (memory.columns + 1) * bytes_per_token(network)
    sessions.drop()
    assert memory.bytes == 0
    sessions.complete([[1, 2, 3]], draws(0, 1), Sampling(max_new_tokens=4))


def test_caches_that_cannot_be_cut_are_not_kept() -> None:
    torch.manual_seed(0)
    sliding = MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=8, head_dim=8)).eval()
    mixed = qwen(use_sliding_window=True, sliding_window=8, max_window_layers=1)
    assert [can_be_kept(network) for network in (qwen(), llama(), sliding, mixed)] == [True, True, False, False]
    for network in (sliding, mixed):
        model = LanguageModel(network, small_model().tokenizer, "sliding")
        sampler = Sampler(model)
        sampler._memo = None
        prompts = [numbers(random.Random(i), 20, 21) for i in range(2)]
        found = sampler(prompts, draws(0, 2), Sampling(max_new_tokens=6))
        assert gap(network, prompts, found, 1.0) < 5e-6
        assert sampler.counts == CacheCounts(prefilled=40)


def test_tiny_vocabularies_get_the_memo() -> None:
    assert memo_pays(small_model().network) and not memo_pays(qwen(vocab_size=2000))
    model = small_model()
    sampler = Sampler(model)
    sampler([[5, 6, 7]] * 3, draws(0, 3), Sampling(max_new_tokens=2))
    sampler([[5, 6, 7]] * 3, draws(0, 3), Sampling(max_new_tokens=2))
    assert sampler.counts == CacheCounts(prefilled=3, reused=15)


def test_prompts_that_are_appended_to_keep_keys_and_values_whatever_the_vocabulary() -> None:
    model = small_model()
    agent = transformers_agent(model, AgentSettings(prompt={"mode": "conversation"}))
    sampler = agent.generate
    assert isinstance(sampler, Sampler) and memo_pays(model.network)
    [first] = sampler([(5, 6, 7)], draws(0, 1), Sampling(max_new_tokens=2))
    sampler([(5, 6, 7, *first.ids, 8)], draws(1, 1), Sampling(max_new_tokens=2))
    assert sampler.counts == CacheCounts(prefilled=5, reused=4)


def test_drafts_are_refused_where_none_are_made() -> None:
    sliding = LanguageModel(
        MistralForCausalLM(MistralConfig(**{**SHAPE, "vocab_size": 2000}, sliding_window=8)),
        small_model().tokenizer,
        "sliding",
    )
    with pytest.raises(ConfigError, match=r"draft_tokens is 4, .* the model sliding: its layers .* Leave it out"):
        Sampler(sliding, draft_tokens=4)
    drafts = {"draft_tokens": 4}
    with pytest.raises(ConfigError, match=r"draft_tokens is 4, .* distributions of whole prompts .*mode conversation"):
        transformers_agent(small_model(), AgentSettings(server=drafts))
    sampler = transformers_agent(small_model(), AgentSettings(server=drafts, prompt={"mode": "conversation"})).generate
    assert isinstance(sampler, Sampler)
    again = sampler.appending()._sessions
    assert again is not None and again.draft_tokens == 4, "agent programs draft as well"


def test_the_automatic_budget_is_a_share_of_memory() -> None:
    small, large = qwen(), qwen(num_hidden_layers=6)
    assert bytes_per_token(small) == 2 * 3 * 2 * 8 * 4
    assert automatic_budget(small) == pytest.approx(2 * automatic_budget(large), rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_output_layer_gets_last_tokens_in_one_piece(dtype: torch.dtype) -> None:
    network, shapes = llama(), []
    torch.nn.Module.to(network, dtype)
    with torch.no_grad():
        hidden = network.model(input_ids=torch.arange(12).view(3, 4)).last_hidden_state[:, -1:]
        expected = network.lm_head(hidden)[:, 0]

    def note(_head: torch.nn.Module, arguments: tuple[torch.Tensor]) -> None:
        shapes.append((tuple(arguments[0].shape), arguments[0].is_contiguous()))

    handle = network.lm_head.register_forward_hook(lambda head, given, _: note(head, given))
    with torch.no_grad():
        found = last_logits(network, DynamicCache(config=network.config), input_ids=torch.arange(12).view(3, 4))
    handle.remove()
    assert shapes == [((3, 1, SHAPE["hidden_size"]), dtype == torch.bfloat16)]
    assert torch.equal(found, expected), "not a bit changes"
    assert not network.lm_head._forward_pre_hooks


def test_heads_that_share_keys_read_them_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers.integrations.sdpa_attention as sdpa

    prompts = [numbers(random.Random(i), 20, 40) for i in range(3)]
    sampling = Sampling(0.8, 1.0, 10)
    monkeypatch.setattr("turngym.agents.models.kv_cache.forward.grouped_attention", lambda network: {})
    usual = Sessions(qwen(), STOP, 10**4).complete(prompts, draws(0, 3), sampling)
    monkeypatch.undo()
    copies: list[int] = []
    copy = sdpa.repeat_kv

    def counted(states: torch.Tensor, count: int) -> torch.Tensor:
        copies.append(count)
        return copy(states, count)

    monkeypatch.setattr(sdpa, "repeat_kv", counted)
    assert Sessions(qwen(), STOP, 10**4).complete(prompts, draws(0, 3), sampling) == usual
    assert not copies
    size = len(prompts[0])
    qwen()(torch.tensor(prompts[:1]), attention_mask=torch.ones(1, 1, size, size, dtype=torch.bool).tril())
    assert copies  # passes of others are left as they are
