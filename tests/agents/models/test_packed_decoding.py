"""Passes without padding, with attention computed sequence by sequence here: log-probabilities of fresh passes."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from test_sessions import WORDS, draws, gap, llama, numbers, qwen
from torch import Tensor

from turngym.agents.models.kv_cache import Sessions, packed, sessions
from turngym.agents.models.kv_cache.packed import PackedForward
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError


def attention_of_each(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    starts: tuple[Tensor, Tensor],
    longest: tuple[int, int],
    scale: float | None,
    used_keys: Tensor,
) -> Tensor:
    """What flash attention computes, one sequence after the other."""
    found = torch.full_like(query, float("nan"))
    for i, used in enumerate(used_keys.tolist()):
        start, end = starts[0][i : i + 2].tolist()
        first = int(starts[1][i])
        assert 0 < end - start <= longest[0] and used <= longest[1]
        new = torch.arange(end - start)
        mask = torch.arange(used) <= (used - (end - start) + new)[:, None]
        rows = [t.transpose(0, 1) for t in (query[start:end], keys[first : first + used], values[first : first + used])]
        attended = torch.nn.functional.scaled_dot_product_attention(
            rows[0], rows[1], rows[2], attn_mask=mask, scale=scale, enable_gqa=True
        )
        found[start:end] = attended.transpose(0, 1)
    return found


@pytest.fixture(autouse=True)
def packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "flash_attention", attention_of_each)
    monkeypatch.setattr(sessions, "packing_pays", lambda network: True)


@pytest.mark.parametrize(("make", "temperature"), [(qwen, 1.0), (llama, 0.7), (qwen, 0.0)])
def test_conversations_of_different_lengths(make: Any, temperature: float) -> None:
    network, rng = make(), random.Random(3)
    kept = Sessions(network, frozenset(range(0, WORDS, 9)), 10**6)
    assert isinstance(kept._forward, PackedForward)
    said = [numbers(rng, 3, 60) for _ in range(11)]
    for turn in range(4):
        found = kept.complete(said, draws(turn, 11, 21), Sampling(temperature or 0.0, 1.0, 21))
        assert gap(network, said, found, temperature or 1.0) < 5e-6
        said = [[*ids, *each.ids, *numbers(rng, 1, 9)] for ids, each in zip(said, found, strict=True)]
    assert kept.counts.evictions == 0 and kept.counts.reused > 0


def test_graphs_of_one_token_refuse_drafts() -> None:
    with pytest.raises(ConfigError, match=r"draft_tokens is 8, .* torch.float32 weights on a GPU: .* Leave it out"):
        Sessions(qwen(), frozenset(), 10**6, draft_tokens=8)


def test_the_tokens_are_those_of_padded_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps between two looks of the host change nothing: not the tokens, not where a completion ends."""
    network, rng = qwen(), random.Random(5)
    said = [numbers(rng, 3, 40) for _ in range(9)]
    sampling = Sampling(1.0, 0.9, 30, entropies=True)
    stop = frozenset(range(0, WORDS, 20))
    found = Sessions(network, stop, 10**6).complete(said, draws(0, 9, 30), sampling)
    monkeypatch.setattr(sessions, "packing_pays", lambda network: False)
    wanted = Sessions(network, stop, 10**6).complete(said, draws(0, 9, 30), sampling)
    assert [each.ids for each in found] == [each.ids for each in wanted]
    assert len({len(each.ids) for each in found}) > 2
    for one, other in zip(found, wanted, strict=True):
        assert np.allclose(one.logprobs, other.logprobs, atol=1e-5)
        assert np.allclose(one.entropies, other.entropies, atol=1e-5)


def test_forks_evictions_and_a_long_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of groups copy their beginnings, a small budget evicts rows, and a prompt takes several passes."""
    monkeypatch.setattr(packed, "_BATCH_TOKENS", 50)
    network, rng = qwen(), random.Random(7)
    kept = Sessions(network, frozenset(), 700)
    for turn in range(5):
        firsts = [numbers(rng, 20, 120) for _ in range(2)]
        said = [[*firsts[k % 2], *numbers(rng, 0, 5)] for k in range(6)]
        found = kept.complete(said, draws(turn, 6, 12), Sampling(max_new_tokens=12))
        assert gap(network, said, found, 1.0) < 5e-6
    assert kept.counts.forks > 4 and kept.counts.evictions > 0


def test_requests_with_different_sampling_run_together() -> None:
    network = qwen()
    kept = Sessions(network, frozenset(), 10**6)
    said = [numbers(random.Random(k), 9, 10) for k in range(6)]
    kinds = [Sampling(1.0, 1.0, 9), Sampling(0.0, 1.0, 5)]
    from collections import deque

    from turngym.agents.models.kv_cache.requests import Running

    requests = [
        Running(k, ids, draw, kinds[k % 2], frozenset())
        for k, (ids, draw) in enumerate(zip(said, draws(0, 6), strict=True))
    ]
    waiting = deque(requests)
    while waiting or kept.store.running:
        kept.advance(waiting)
    found = [request.completion() for request in requests]
    assert [len(each.ids) for each in found] == [9, 5] * 3
    assert gap(network, said[::2], found[::2], 1.0) < 5e-6
    assert gap(network, said[1::2], found[1::2], 1.0) < 5e-6


def test_norms_are_fused_unless_their_numbers_would_change() -> None:
    """All of Qwen3's norms, and none whose weight is added to one."""
    from transformers import GemmaConfig, GemmaForCausalLM

    from turngym.agents.models.kv_cache.norms import fuse_norms

    network = qwen()
    assert fuse_norms(network) == 4 * 3 + 1
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 50}
    gemma = GemmaForCausalLM(GemmaConfig(**shape, num_attention_heads=2, num_key_value_heads=1, head_dim=16)).eval()
    assert fuse_norms(gemma) == 0


def test_replaced_tensors_are_followed() -> None:
    """The passes run on a copy that shares tensors: a new parameter object must reach it."""
    network = qwen()
    kept, said = Sessions(network, frozenset(), 10**6), [numbers(random.Random(1), 20, 21)]
    kept.complete(said, draws(0, 1), Sampling(max_new_tokens=4))
    layer: Any = network.get_submodule("model.layers.1.mlp.down_proj")
    layer.weight = torch.nn.Parameter(layer.weight.detach() * 3 + 0.1)
    found = kept.complete(said, draws(0, 1), Sampling(max_new_tokens=4))
    assert gap(network, said, found, 1.0) < 5e-6
