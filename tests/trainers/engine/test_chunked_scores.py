"""Log-probabilities and entropies in chunks against the dense form, gradients too, and what is refused."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from small import small_model
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from turngym.agents.models.loading import LanguageModel
from turngym.errors import ModelError
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import Read, Row
from turngym.trainers.engine import chunked_scores, scoring
from turngym.trainers.engine.chunked_scores import FlatScores, chunk_size, flat_scores
from turngym.trainers.engine.head import Head, head_of
from turngym.trainers.engine.learner import Learner, UpdateConfig

WORDS, WIDTH, READS = 37, 6, 23


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def made_head(kind: str) -> tuple[Head, list[Tensor]]:
    """Return a head and its tensors that need gradients."""
    weight, bias = normal(WORDS, WIDTH, seed=1), normal(WORDS, seed=2)
    a, b = normal(2, WIDTH, seed=3), normal(WORDS, 2, seed=4)
    heads = {
        "plain": (Head(weight), [weight]),
        "bias": (Head(weight, bias), [weight, bias]),
        "scale": (Head(weight, scale=0.3), [weight]),
        "softcap": (Head(weight, bias, scale=1.5, softcap=3.0), [weight, bias]),
        "adapters": (Head(weight, adapters=((a, b, 0.5),)), [a, b]),
        "two adapters": (Head(weight, adapters=((a, b, 0.5), (2 * a.detach(), b, 0.1))), [weight, a, b]),
    }
    head, leaves = heads[kind]
    for leaf in leaves:
        leaf.requires_grad_()
    return head, leaves


def scores_of(head: Head, hidden: Tensor, targets: Tensor, temperature: float = 1.0, chunk: int = 0) -> FlatScores:
    """Return scores and entropies of reads that use one state each."""
    return flat_scores(head, hidden, torch.arange(len(hidden)), targets, temperature, True, chunk)


KINDS = ["plain", "bias", "scale", "softcap", "adapters", "two adapters"]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_give_the_scores_and_gradients_of_the_dense_form(kind: str, temperature: float) -> None:
    head, leaves = made_head(kind)
    hidden = normal(READS, WIDTH).requires_grad_()
    targets = torch.randint(WORDS, (READS,), generator=torch.Generator().manual_seed(5))
    targets[3] = -1
    weights = normal(2, READS, seed=6)
    found = []
    for chunk in (READS, 7, 1):
        scores = scores_of(head, hidden, targets, temperature, chunk=chunk)
        assert scores.entropy is not None
        total = (scores.logprobs * weights[0] + scores.entropy * weights[1]).sum()
        found.append([scores.logprobs, scores.entropy, *torch.autograd.grad(total, [hidden, *leaves])])
    for other in found[1:]:
        for expected, value in zip(found[0], other, strict=True):
            torch.testing.assert_close(value, expected, atol=1e-10, rtol=0)
    assert found[1][0][3] == found[1][1][3] == 0, "a read without a target"


@pytest.mark.parametrize("chunk", [1000, 20, 3])
def test_reads_share_states_and_states_go_unread(chunk: int) -> None:
    """As in a tree of rows, where branches begin at one state, and in a rectangle of rows of unequal length."""
    head, leaves = made_head("plain")
    hidden = normal(READS, WIDTH).requires_grad_()
    state, targets = torch.tensor([5, 2, 5, 22, 2, 7]), torch.tensor([1, 2, 3, 4, 5, 6])
    found = flat_scores(head, hidden, state, targets, 0.7, True, chunk)
    expected = scores_of(head, hidden[state], targets, 0.7)
    for a, b in zip(found, expected, strict=True):
        assert a is not None
        assert b is not None
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)
        for x, y in zip(
            *(torch.autograd.grad(t.sum(), [hidden, *leaves], retain_graph=True) for t in (a, b)), strict=True
        ):
            torch.testing.assert_close(x, y, atol=1e-10, rtol=0)


def test_the_dense_form_is_the_definition() -> None:
    head, _ = made_head("softcap")
    assert head.bias is not None
    hidden, targets = normal(READS, WIDTH), torch.arange(READS)
    raw = 1.5 * (hidden @ head.weight.T + head.bias)
    distribution = (3 * torch.tanh(raw / 3) / 0.7).log_softmax(-1)
    scores = scores_of(head, hidden, targets, 0.7)
    torch.testing.assert_close(scores.logprobs, distribution[torch.arange(READS), targets], atol=1e-12, rtol=0)
    torch.testing.assert_close(scores.entropy, torch.special.entr(distribution.exp()).sum(-1), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_agree_with_finite_differences(kind: str) -> None:
    head, leaves = made_head(kind)
    hidden = normal(5, WIDTH).requires_grad_()

    def both(*_: Tensor) -> tuple[Tensor, Tensor]:
        scores = scores_of(head, hidden, torch.arange(5), 0.7, chunk=2)
        assert scores.entropy is not None
        return scores.logprobs, scores.entropy

    assert torch.autograd.gradcheck(both, (hidden, *leaves))


def test_one_output_alone_and_several_backward_passes() -> None:
    """As probes need them: gradients of single terms, then of the whole loss, through one forward pass."""
    head, _ = made_head("plain")
    hidden = normal(READS, WIDTH).requires_grad_()
    found = []
    for chunk in (READS, 4):
        scores = scores_of(head, hidden, torch.arange(READS), chunk=chunk)
        assert scores.entropy is not None
        terms = (scores.logprobs.sum(), scores.entropy.sum(), (scores.logprobs + scores.entropy).sum())
        found.append([torch.autograd.grad(term, hidden, retain_graph=True)[0] for term in terms])
    for dense, chunked in zip(*found, strict=True):
        torch.testing.assert_close(chunked, dense, atol=1e-10, rtol=0)
    torch.testing.assert_close(found[1][0] + found[1][1], found[1][2], atol=1e-10, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_chunks_compute_in_the_format_of_the_dense_form(dtype: torch.dtype, autocast: bool) -> None:
    """Under autocast forward and backward use one format; else the recomputed logits would not fit their sums."""
    weight = normal(WORDS, WIDTH, seed=1).to(dtype).requires_grad_()
    hidden = normal(READS, WIDTH).to(dtype).requires_grad_()
    results = []
    for chunk in (READS, 4):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            scores = scores_of(Head(weight), hidden, torch.arange(READS), chunk=chunk)
        assert scores.entropy is not None
        assert scores.logprobs.dtype == scores.entropy.dtype == torch.float32
        gradients = torch.autograd.grad((scores.logprobs + 0.1 * scores.entropy).sum(), [hidden, weight])
        assert all(g.dtype == dtype for g in gradients)
        results.append([scores.logprobs, scores.entropy, *gradients])
    rounding = dtype == torch.bfloat16 or autocast
    for index, (dense, chunked) in enumerate(zip(*results, strict=True)):
        tolerance = 2e-2 * float(dense.abs().max()) if rounding and index > 1 else 1e-5
        torch.testing.assert_close(chunked, dense, atol=tolerance, rtol=0)


class _Largest(TorchDispatchMode):
    """Notes the largest tensor that any operation returns."""

    numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for each in found if isinstance(found, tuple | list) else (found,):
            if isinstance(each, Tensor):
                self.numbers = max(self.numbers, each.numel())
        return found


def test_no_tensor_is_larger_than_one_chunk() -> None:
    reads, words, chunk = 1000, 500, 10
    weight, hidden = torch.randn(words, 8).requires_grad_(), torch.randn(reads, 8).requires_grad_()
    made: Any = _Largest
    sizes = []
    for size in (chunk, reads):
        with made() as largest:
            scores = scores_of(Head(weight), hidden, torch.zeros(reads, dtype=torch.long), 1.0, size)
            assert scores.entropy is not None
            (scores.logprobs + scores.entropy).sum().backward()
        sizes.append(largest.numbers)
    assert sizes[0] <= reads * 8, "hidden states, and no logits of all of them"
    assert sizes[1] == reads * words, "negative oracle: the dense form has them"


def test_chunks_fit_the_budget_and_are_not_tiny() -> None:
    assert 16 * chunk_size(50_000) * 50_000 <= chunked_scores.BUDGET
    assert chunk_size(151_936) == chunk_size(10**6) == chunked_scores.LEAST


def rows_of(network: Any) -> list[Row]:
    words = network.config.get_text_config().vocab_size
    ids = [tuple(int(i) % words for i in torch.arange(start, start + 9) ** 2) for start in (3, 5)]
    return [
        Row.of(each, [Read(p, each[p + 1], p, 0, 0) for p in places])
        for each, places in zip(ids, ((2, 4, 7), (3,)), strict=True)
    ]


def own_scores(network: Any, rows: Sequence[Row], temperature: float) -> Tensor:
    found = []
    for row in rows:
        logits: Tensor = network(torch.tensor([row.ids.tolist()]), use_cache=False).logits[0]
        distribution = torch.log_softmax(logits / temperature, -1)
        found.append(torch.stack([distribution[read.position, read.target] for read in row.reads]))
    return torch.cat(found)


def tiny(name: str, **settings: Any) -> Any:
    from transformers import CONFIG_MAPPING

    kind: Any = CONFIG_MAPPING[name]
    config = kind(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
        pad_token_id=0,
        initializer_range=0.3,
        **settings,
    )
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("qwen3", {}),
        ("qwen3", {"tie_word_embeddings": True}),
        ("llama", {}),
        ("gemma2", {"final_logit_softcapping": 2.0}),
        ("granite", {"logits_scaling": 4.0}),
        ("cohere", {"logit_scale": 0.2}),
        ("phi", {}),
    ],
)
def test_scores_are_those_of_the_models_own_logits(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = tiny(name, **settings)
    rows = rows_of(network)
    expected = own_scores(network, rows, 0.7)
    expected.sum().backward()
    gradients = {key: p.grad.clone() for key, p in network.named_parameters() if p.grad is not None}
    for chunk in (1000, 1):
        network.zero_grad()
        monkeypatch.setattr(chunked_scores, "chunk_size", lambda words, size=chunk: size)
        found = scoring.score(network, rows, 0.7).logprobs
        torch.testing.assert_close(found[found != 0], expected, atol=1e-5, rtol=0)
        found.sum().backward()
        for key, parameter in network.named_parameters():
            torch.testing.assert_close(parameter.grad, gradients[key], atol=1e-4, rtol=1e-3)


def test_a_model_that_does_something_else_to_its_logits_is_refused() -> None:
    network = tiny("qwen3")
    original = network.lm_head.forward
    network.lm_head.forward = lambda x: original(x) ** 3
    with pytest.raises(ModelError, match=r"logits of a Qwen3ForCausalLM are not its head times"):
        scoring.score(network, rows_of(network), 1.0)
    with pytest.raises(ModelError, match=r"logits of a Qwen3ForCausalLM are not its head times"):
        Learner(LanguageModel(network, small_model().tokenizer, "odd"), build("grpo"), UpdateConfig())


def test_a_head_that_is_no_matrix_is_refused() -> None:
    network = tiny("qwen3")
    network.lm_head = nn.Sequential(network.lm_head)
    with pytest.raises(ModelError, match="expected a linear layer"):
        head_of(network)


def test_adapters_on_the_head_are_read_and_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    from peft import LoraConfig, inject_adapter_in_model

    network: Any = tiny("qwen3").requires_grad_(False)
    settings = LoraConfig(r=2, lora_alpha=4, target_modules=["lm_head", "q_proj"], init_lora_weights=False)
    adapted: Any = inject_adapter_in_model(settings, network)
    rows = rows_of(adapted)
    trained = {key: p for key, p in adapted.named_parameters() if p.requires_grad}
    expected = own_scores(adapted, rows, 1.0)
    gradients = torch.autograd.grad(expected.sum(), list(trained.values()))
    for chunk in (1000, 2):
        monkeypatch.setattr(chunked_scores, "chunk_size", lambda words, size=chunk: size)
        found = scoring.score(adapted, rows, 1.0).logprobs
        torch.testing.assert_close(found[found != 0], expected, atol=1e-5, rtol=0)
        for key, a, b in zip(trained, torch.autograd.grad(found.sum(), list(trained.values())), gradients, strict=True):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3, msg=key)
    assert any("lm_head" in key for key in trained)
