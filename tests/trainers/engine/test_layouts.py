"""Rows, packed rows and token trees give the same numbers and gradients, with the same or fewer tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from layout_batches import awkward_rows, exact_norms, row, wide_model
from small import small_model
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from turngym.agents.models.loading import LanguageModel
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import Row
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.layouts import LAYOUTS, ROWS, Layout, check, layout_of, segments
from turngym.trainers.engine.layouts.check import require_layout
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.layouts.segments import Pieces, pieces_of
from turngym.trainers.engine.layouts.tree import PackedTree, block_mask, dense_mask, packed_tree
from turngym.trainers.engine.learner import Learner, UpdateConfig
from turngym.trainers.engine.scoring import Critic, score

CPU = torch.device("cpu")
SHARING = pytest.mark.parametrize("layout", [layout for layout in LAYOUTS.values() if layout.shares_rows])


@pytest.fixture(scope="module", autouse=True)
def _exact() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        yield


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return wide_model()


def outputs(network: Any, rows: Sequence[Row], layout: Layout) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Log-probabilities, entropies and gradients of a function of both."""
    network.zero_grad()
    found = score(network, rows, 0.7, with_entropy=True, layout=layout)
    assert found.entropy is not None
    (found.logprobs.sin().sum() + found.entropy.cos().sum()).backward()
    return found.logprobs.detach(), found.entropy.detach(), [p.grad.clone() for p in network.parameters()]


@SHARING
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_log_probabilities_entropies_and_gradients_are_those_of_separate_rows(
    layout: Layout, attention: str, model: LanguageModel
) -> None:
    """Attention alone, ``eager``, computes in single precision."""
    network: Any = model.network
    rows = awkward_rows()
    expected = outputs(network, rows, ROWS)
    assert max(float(each.abs().max()) for each in expected[2]) > 0.1
    network.set_attn_implementation(attention)
    found = outputs(network, rows, layout)
    network.set_attn_implementation("sdpa")
    tolerance = 1e-10 if attention == "sdpa" else 1e-3
    for a, b in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


@SHARING
def test_values_and_their_gradients_are_those_of_separate_rows(layout: Layout, model: LanguageModel) -> None:
    critic = Critic(model.network)
    torch.nn.init.normal_(critic.head.weight, generator=torch.Generator().manual_seed(0))
    found = []
    for each in (layout, ROWS):
        critic.zero_grad()
        values = critic(awkward_rows(), each)
        values.sin().sum().backward()
        found.append([values.detach(), *(p.grad.clone() for p in critic.parameters() if p.grad is not None)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_a_mask_of_ones_on_packed_rows_would_be_noticed(model: LanguageModel) -> None:
    """Negative oracle: transformers then lets every sequence see those before it, without a word."""

    class Masked:
        name, shares_rows, needs_mask = "masked", True, False
        cut = staticmethod(layout_of("packed").cut)

        def lay_out(self, sequences: Sequence[Row], device: torch.device, attention: str = "sdpa") -> Any:
            inputs = layout_of("packed").lay_out(sequences, device, attention)
            assert inputs.mask is None
            return inputs._replace(mask=torch.ones_like(inputs.ids), more={})

    rows = awkward_rows()
    with torch.no_grad():
        wrong = score(model.network, rows, 1.0, layout=Masked()).logprobs
        assert float((wrong - score(model.network, rows, 1.0).logprobs).abs().max()) > 0.1
    with pytest.raises(ConfigError, match="mix"):
        require_layout(model.network, Masked())


def node_by_node(rows: Sequence[Row]) -> tuple[list[tuple[int, ...]], list[list[int]]]:
    """The prefix at each node of the trie in depth-first order, and the nodes of each row."""
    prefixes = sorted({tuple(each.ids[: k + 1].tolist()) for each in rows for k in range(len(each.ids))})
    return prefixes, [[prefixes.index(tuple(each.ids[: p + 1].tolist())) for p in each.reads.position] for each in rows]


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_is_the_trie_of_its_rows(seed: int) -> None:
    rows = awkward_rows(seed)
    tree = packed_tree(rows)
    prefixes, places = node_by_node(rows)
    assert tree.ids.tolist() == [prefix[-1] for prefix in prefixes]
    assert tree.depth.tolist() == [len(prefix) - 1 for prefix in prefixes]
    assert tree.places.tolist() == [place for each in places for place in each]
    for node, prefix in enumerate(prefixes):
        inside = [k for k, other in enumerate(prefixes) if other[: len(prefix)] == prefix]
        assert inside == list(range(node, tree.leave[node]))


def test_the_block_mask_of_flex_attention_lets_the_same_tokens_see_each_other() -> None:
    rows = [row(np.random.default_rng(seed).integers(0, 3, 300).tolist(), [0]) for seed in range(2)] + awkward_rows()
    leave = torch.from_numpy(packed_tree(rows).leave)
    found, expected = block_mask(leave), dense_mask(leave)[0, 0]
    node = torch.arange(len(leave))
    zero = torch.zeros((), dtype=torch.long)
    assert torch.equal(found.mask_mod(zero, zero, node[:, None], node[None]), expected)
    blocks = (
        torch.nn.functional.pad(expected, (0, -len(leave) % 128) * 2).unflatten(0, (-1, 128)).unflatten(2, (-1, 128))
    )
    assert torch.equal(found.to_dense()[0, 0].bool(), blocks.any(3).any(1))
    assert not bool(blocks.any(3).any(1).all()), "some blocks are left out"


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("limit", [1, 20, 45, 1000])
def test_cuts_have_every_sequence_once_and_keep_the_limit(name: str, limit: int) -> None:
    rows, layout = awkward_rows(), layout_of(name)
    chosen = [7, 3, 0, 8, 5, 1]
    chunks = layout.cut(rows, chosen, limit)
    assert sorted(s for chunk in chunks for s in chunk) == sorted(chosen)
    for chunk in chunks:
        tokens = layout.lay_out([rows[s] for s in chunk], CPU).ids.numel()
        assert len(chunk) == 1 or tokens <= limit
    for one, two in pairwise(chunks):
        together = layout.lay_out([rows[s] for s in (*one, two[0])], CPU).ids.numel()
        assert together > (0.9 * limit if name == "auto" else limit), "the next one would have fitted"


def pieces_of_rows(rows: Sequence[Row]) -> tuple[PackedTree, Pieces]:
    tree = packed_tree(rows)
    return tree, pieces_of(tree.pieces, len(tree.ids), CPU)


@pytest.mark.parametrize("seed", range(5))
def test_pieces_of_a_tree_let_the_same_tokens_see_each_other(seed: int) -> None:
    tree, pieces = pieces_of_rows(awkward_rows(seed))
    seen = torch.zeros(len(tree.ids), len(tree.ids), dtype=torch.bool)
    for query, key, mask in pieces.buckets:
        square = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool).tril()[None, None]
        number, place, column = torch.nonzero((square if mask is None else mask)[:, 0].expand(len(query), -1, -1)).T
        node = query[number, place]
        own = pieces.place[node] - (number * query.shape[1] + place) == before_of(pieces, query)
        seen[node[own], key[number[own], column[own]]] = True
    assert torch.equal(seen, dense_mask(torch.from_numpy(tree.leave))[0, 0])


def before_of(pieces: Pieces, query: Tensor) -> int:
    """Number of queries in the buckets before one."""
    sizes = [each.query.numel() for each in pieces.buckets]
    return sum(sizes[: next(k for k, each in enumerate(pieces.buckets) if each.query is query)])


def test_a_group_with_one_prompt_attends_less_than_rows_do() -> None:
    """A prompt of 280 tokens goes through the network once, and less than half of the pairs of all rows is computed."""
    draw = np.random.default_rng(0)
    prompt = draw.integers(0, 90, 280).tolist()
    rows = [row([*prompt, *draw.integers(0, 90, 140).tolist()], [300]) for _ in range(8)]
    tree, pieces = pieces_of_rows(rows)
    assert len(tree.ids) == pytest.approx(280 + 8 * 140, abs=8)
    assert len(pieces.buckets) == 2
    assert sum(query.shape[1] * key.numel() for query, key, _ in pieces.buckets) < 0.5 * 8 * 420**2


def test_a_network_that_takes_no_pieces_has_the_mask(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that do not pass arguments on to their attention compute the same with the mask over all pairs."""
    rows = awkward_rows()
    calls: list[bool] = []
    taken = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def without(*given: Any, **named: Any) -> Any:
        calls.append(named.pop(segments.ARGUMENT, None) is not None)
        return taken(*given, **named)

    found = outputs(model.network, rows, layout_of("tree"))
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", without)
    masked = outputs(model.network, rows, layout_of("tree"))
    assert calls and all(calls)
    for a, b in zip((*found[:2], *found[2]), (*masked[:2], *masked[2]), strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


def test_checkpointed_layers_compute_pieces_again(model: LanguageModel) -> None:
    rows = awkward_rows()
    expected = outputs(model.network, rows, layout_of("tree"))
    with checkpointing(checkpointed_layers(model.network)):
        found = outputs(model.network, rows, layout_of("tree"))
    for a, b in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
        assert torch.equal(a, b)


def test_a_tree_of_ten_turns_holds_each_token_once() -> None:
    """A row for every turn of a conversation is as many tokens as the last of them."""
    ids = np.random.default_rng(0).integers(0, 90, 200).tolist()
    rows = [row(ids[:end], range(end - 10, end - 1)) for end in range(20, 201, 20)]
    assert layout_of("tree").lay_out(rows, CPU).ids.shape == (1, 200)
    assert layout_of("packed").lay_out(rows, CPU).ids.shape == (1, 1100)
    assert ROWS.lay_out(rows, CPU).ids.shape == (10, 200)


def tiny(name: str, **settings: Any) -> Any:
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    shape = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 4}
    kind: Any = CONFIG_MAPPING[name]
    torch.manual_seed(0)
    config = kind(**{**shape, "num_hidden_layers": 2, "num_key_value_heads": 2, **settings})
    return AutoModelForCausalLM.from_config(config).eval()


@SHARING
def test_models_that_mix_neighbours_are_refused(layout: Layout) -> None:
    network = tiny("lfm2", layer_types=["conv", "full_attention"])
    with pytest.raises(ConfigError, match=r"layers of conv, which mix .* Pass --update\.layout rows"):
        require_layout(network, layout)
    require_layout(network, ROWS)


@SHARING
def test_a_model_that_does_not_say_that_it_mixes_is_found_by_its_outputs(layout: Layout) -> None:
    network = tiny("llama")

    def mixed(_module: object, _given: object, embedded: Tensor) -> Tensor:
        before = torch.cat([torch.zeros_like(embedded[:, :1]), embedded[:, :-1]], 1)  # a convolution over two tokens
        return embedded + 0.1 * before

    network.get_input_embeddings().register_forward_hook(mixed)
    with pytest.raises(ConfigError, match=r"differ by .* of their size .* Pass --update\.layout rows"):
        require_layout(network, layout)


def test_sliding_windows_go_with_packed_rows_and_not_with_trees() -> None:
    network = tiny("mistral", sliding_window=4, max_position_embeddings=64, head_dim=8).double()
    require_layout(network, layout_of("packed"))
    with pytest.raises(ConfigError, match=r"see the last 4 tokens only.*rows or packed"):
        require_layout(network, layout_of("tree"))
    require_layout(tiny("mistral", sliding_window=64, max_position_embeddings=64, head_dim=8), layout_of("tree"))


def test_flash_attention_takes_no_tree() -> None:
    network = tiny("llama")
    network.config._attn_implementation = "flash_attention_2"
    with pytest.raises(ConfigError, match=r"flash_attention_2 takes no mask.*--update\.layout packed"):
        require_layout(network, layout_of("tree"))


def test_the_flash_attention_package_is_given_the_borders_of_sequences() -> None:
    """Without them transformers reads the borders from the positions, and waits for the device in every layer."""
    rows = [row([1, 2, 3], [1]), row([4, 5], [0]), row([6, 7, 8, 9], [2])]
    inputs = layout_of("packed").lay_out(rows, CPU, "flash_attention_2")
    assert inputs.mask is None and inputs.more["max_length_q"] == inputs.more["max_length_k"] == 4
    for name in ("cu_seq_lens_q", "cu_seq_lens_k"):
        assert inputs.more[name].dtype == torch.int32 and inputs.more[name].tolist() == [0, 3, 5, 9]


@pytest.mark.parametrize("name", ["packed", "tree"])
def test_sequences_with_pictures_have_rows_of_their_own(name: str) -> None:
    """Equal placeholders may stand for different pictures."""
    seeing = replace(row([1, 2, 3], [1]), pictures=(b"png",))
    with pytest.raises(ConfigError, match=r"images do not support the layout .*--update\.layout rows"):
        layout_of(name).lay_out([seeing], CPU)


def shared_and_strangers() -> tuple[list[Row], list[Row]]:
    """Eight sequences with a common start, and eight of nearly equal lengths without one."""
    draw = np.random.default_rng(0)
    start = draw.integers(0, 90, 30).tolist()
    shared = [row([*start, *draw.integers(0, 90, 10 + k % 2).tolist()], [35]) for k in range(8)]
    return shared, [row([k, *draw.integers(0, 90, 39 + k % 2).tolist()], [35]) for k in range(8)]


def test_auto_counts_tokens() -> None:
    """What sequences share decides, in the cut and in each micro-batch."""
    auto = layout_of("auto")
    shared, strangers = shared_and_strangers()
    assert auto.lay_out(shared, CPU).ids.shape == (1, packed_tree(shared).ids.size)
    assert auto.lay_out(strangers, CPU).ids.shape == (8, 41)
    for rows, name in ((shared, "tree"), (strangers, "rows")):
        limit = 123
        allowed = int(0.9 * limit) if name == "tree" else limit
        assert auto.cut(rows, range(8), limit) == layout_of(name).cut(rows, range(8), allowed)
    assert auto.lay_out([*shared[:1], *strangers[:1]], CPU).ids.shape == (2, 40), "of one micro-batch"


def test_auto_falls_back_to_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that mixes neighbours, or has windows or other attention, is trained in rows, and found so once."""
    fine = small_model()
    assert layout_for(fine, "auto").name == "auto"
    mixing = fine.with_network(tiny("lfm2", layer_types=["conv", "full_attention"]))
    sliding = fine.with_network(tiny("mistral", sliding_window=4, max_position_embeddings=64, head_dim=8))
    other = fine.with_network(tiny("llama"))
    other.network.set_attn_implementation("eager")
    for model in (mixing, sliding, other):
        assert layout_for(model, "auto").name == "rows"
        assert Learner(model, build("grpo"), UpdateConfig()).network is model.network
    counted: list[object] = []

    def noted(*given: object) -> str:
        counted.append(given)
        return ""

    monkeypatch.setattr(check, "_found_objection", noted)
    assert layout_for(sliding, "auto").name == "rows"
    assert not counted


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'tree', got 'heap'"):
        UpdateConfig(layout="heap")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"rows, packed, tree, got 'heap'"):
        layout_of("heap")
