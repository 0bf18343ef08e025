"""Faults of hand-overs: each changes the weights on their way, or what the sampler does with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from weight_handovers import TEMPERATURE, HandOvers, Side, Weights, build

from turngym.agents.models.completion import Completion
from turngym.agents.sampling import Sampling

Fault: TypeAlias = Callable[[HandOvers], Weights]
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
Mixed = Callable[[Tensor, Tensor], Tensor]


def _old(name: str, layers: int) -> bool:
    return any(f"layers.{number}." in name for number in range(layers // 2, layers))


def before(steps: int) -> Fault:
    """Weights of so many hand-overs ago."""
    return lambda case: case.versions[-1 - steps]


def stale_where(is_stale: Callable[[str], bool]) -> Fault:
    """New weights, but for some names."""

    def fault(case: HandOvers) -> Weights:
        new, old = case.versions[-1], case.versions[-2]
        return {name: old[name] if is_stale(name) else tensor for name, tensor in new.items()}

    return fault


def mixed(mix: Mixed, is_chosen: Callable[[str], bool] = lambda name: True) -> Fault:
    """Some function of new and old weights."""

    def fault(case: HandOvers) -> Weights:
        new, old = case.versions[-1], case.versions[-2]
        return {name: mix(new[name], old[name]) if is_chosen(name) else new[name] for name in new}

    return fault


def changed(change: Callable[[Weights], None]) -> Fault:
    """New weights, changed in place."""

    def fault(case: HandOvers) -> Weights:
        found = {name: tensor.clone() for name, tensor in case.versions[-1].items()}
        change(found)
        return found

    return fault


def sampler(change: Callable[[Side], None]) -> Fault:
    """Sound weights for a sampler that does something else with them."""

    def fault(case: HandOvers) -> Weights:
        change(case.side)
        return case.versions[-1]

    return fault


def upper_half_old(new: Tensor, old: Tensor) -> Tensor:
    """One of two tensor-parallel halves of an update."""
    found = new.clone()
    found[: len(new) // 2] = old[: len(new) // 2]
    return found


def rounded(format: torch.dtype) -> Fault:
    """Weights rounded to another format on the way."""
    return mixed(lambda new, old: new.to(format).to(new.dtype))


def quantised(new: Tensor, old: Tensor) -> Tensor:
    """8 bits for each row."""
    if new.ndim < 2:
        return new
    scale = new.float().abs().amax(-1, keepdim=True).clamp(min=1e-9) / 127
    return ((new.float() / scale).round() * scale).to(new.dtype)


def _permute_vocabulary(weights: Weights, rows: Sequence[int] | None = None) -> None:
    order = torch.randperm(len(weights[EMBEDDING]), generator=torch.Generator().manual_seed(1))
    if rows is not None:
        order = torch.arange(len(order))
        order[list(rows)] = torch.tensor(list(rows)[::-1])
    for name in (EMBEDDING, HEAD):
        weights[name] = weights[name][order]


def _exchange_layers(weights: Weights) -> None:
    for name in [each for each in weights if ".layers.0." in each]:
        other = name.replace(".layers.0.", ".layers.1.")
        weights[name], weights[other] = weights[other], weights[name]


def _exchange_names(first: str, second: str) -> Callable[[Weights], None]:
    def change(weights: Weights) -> None:
        for name in [each for each in weights if f".{first}." in each]:
            other = name.replace(f".{first}.", f".{second}.")
            weights[name], weights[other] = weights[other], weights[name]

    return change


def _permute_heads(weights: Weights) -> None:
    for name in [each for each in weights if each.endswith("1.self_attn.q_proj.weight")]:
        weights[name] = weights[name].unflatten(0, (4, -1)).flip(0).flatten(0, 1)


def _fill(name: str, value: float, count: int = 0) -> Callable[[Weights], None]:
    def change(weights: Weights) -> None:
        (found,) = [each for each in weights if each.endswith(name)]
        flat = weights[found].view(-1)
        flat[: count or len(flat)] = value

    return change


def _drop_biases(weights: Weights) -> None:
    for name in [each for each in weights if each.endswith("bias")]:
        weights[name].zero_()


def _keep_old_keys(side: Side) -> None:
    """Let the sampler continue with keys and values of the old weights."""
    sessions: Any = side.sampler._sessions
    sessions._watch.has_changed = lambda network: False


def _in_train_mode(side: Side) -> None:
    """Let the sampler compute with dropout, as in a network that was left in train mode."""
    for module in side.network.modules():
        if hasattr(module, "attention_dropout"):
            cast(Any, module).attention_dropout = 0.1
    side.network.train()
    cast(Any, side.network).eval = lambda: side.network


def _rotary(side: Side) -> None:
    module = cast(Any, side.network.model).rotary_emb
    dimensions = torch.arange(0, 2 * len(module.inv_freq), 2).float() / (2 * len(module.inv_freq))
    module.inv_freq = 1.0 / (1_000_000.0**dimensions)


def _positions_off(side: Side) -> None:
    """Positions that are scaled, as for a longer context."""
    module = cast(Any, side.network.model).rotary_emb
    module.inv_freq = module.inv_freq / 2


def _norm_epsilon(side: Side) -> None:
    for module in side.network.modules():
        if hasattr(module, "variance_epsilon"):
            cast(Any, module).variance_epsilon = 1e-3


def _truncated(side: Side) -> None:
    """A sampler that reads the last 100 tokens of a prompt."""
    inner = side.generate
    side.generate = lambda prompts, uniforms, sampling: inner([p[-100:] for p in prompts], uniforms, sampling)


def _logprobs(change: Callable[[Tensor, int], Tensor]) -> Callable[[Side], None]:
    """Completions whose log-probabilities are changed, given the whole distribution at temperature 1 and the token."""

    def apply(side: Side) -> None:
        inner = side.generate

        def generate(
            prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
        ) -> list[Completion]:
            found = inner(prompts, uniforms, sampling)
            results = []
            for prompt, each in zip(prompts, found, strict=True):
                logits = side.network(torch.tensor([list(prompt)])).logits[0, -1].float()
                results.append(replace(each, logprobs=(float(change(logits, each.ids[0])),)))
            return results

        side.generate = generate

    return apply


def _tempered(power: float) -> Callable[[Tensor, int], Tensor]:
    return lambda logits, token: (logits / TEMPERATURE**power).log_softmax(-1)[token]


def _renormalised(logits: Tensor, token: int) -> Tensor:
    """Log-probability among the tokens that top-p 0.9 leaves."""
    probabilities = (logits / TEMPERATURE).softmax(-1)
    ordered, order = probabilities.sort(descending=True)
    kept = order[ordered.cumsum(-1) - ordered < 0.9]
    return (probabilities[token] / probabilities[kept].sum()).log()


def _biased(side: Side) -> None:
    """A bias on the end token, as some servers add to keep answers short."""
    head: Any = side.network.lm_head
    bias = torch.zeros(head.out_features, dtype=head.weight.dtype)
    bias[side.model.tokenizer.eos_token_id] = 1.0
    head.bias = nn.Parameter(bias, requires_grad=False)


def _shifted_scores(side: Side) -> None:
    """Log-probabilities of the tokens one place on."""
    side.score = lambda sequences: [(*row[1:], row[0]) for row in side.scores(sequences)]


def _adapter(change: Callable[[HandOvers, Weights, dict[str, tuple[Tensor, Tensor, float]]], None]) -> Fault:
    """Base weights with adapters that are added in another way."""

    def fault(case: HandOvers) -> Weights:
        found = {name: tensor.clone() for name, tensor in case.versions[0].items()}  # adapters begin at zero
        change(case, found, case.policy.adapters())
        return found

    return fault


def _add(scale: float, is_chosen: Callable[[str], bool] = lambda name: True) -> Fault:
    def change(case: HandOvers, weights: Weights, parts: dict[str, tuple[Tensor, Tensor, float]]) -> None:
        for name, (first, second, own) in parts.items():
            if is_chosen(name):
                weights[name] += scale * own * (second @ first)

    return _adapter(change)


def _add_to_other_layers(case: HandOvers, weights: Weights, parts: dict[str, tuple[Tensor, Tensor, float]]) -> None:
    for name, (first, second, own) in parts.items():
        weights[name.replace(".layers.0.", ".x.").replace(".layers.1.", ".layers.0.").replace(".x.", ".layers.1.")] += (
            own * (second @ first)
        )


def _add_transposed(case: HandOvers, weights: Weights, parts: dict[str, tuple[Tensor, Tensor, float]]) -> None:
    for name, (first, second, own) in parts.items():
        change = own * (second @ first)
        weights[name] += change.T if change.shape[0] == change.shape[1] else change


def other_model(case: HandOvers) -> Weights:
    """Weights of another model of the same shape."""
    found = build(case.kind, seed=1234).network.state_dict()
    return {name: tensor.clone() for name, tensor in found.items()}


WHOLE: dict[str, Fault] = {
    "all weights stale": before(1),
    "the model before last": before(2),
    "the first model": lambda case: case.versions[0],
    "other model of the same shape": other_model,
    "half an update: upper layers old": stale_where(lambda name: _old(name, 3)),
    "half an update: lower layers old": stale_where(lambda name: "layers.0." in name),
    "missing shard: attention old": stale_where(lambda name: "self_attn" in name),
    "missing shard: one matrix old": stale_where(lambda name: name.endswith("layers.1.mlp.down_proj.weight")),
    "tied head forgotten": stale_where(lambda name: name == HEAD),
    "embedding old, head new": stale_where(lambda name: name == EMBEDDING),
    "embedding and head old": stale_where(lambda name: name in (HEAD, EMBEDDING)),
    "one row of the embedding old": mixed(
        lambda new, old: torch.cat([new[:77], old[77:78], new[78:]]), lambda name: name == EMBEDDING
    ),
    "one row of the head old": mixed(
        lambda new, old: torch.cat([new[:77], old[77:78], new[78:]]), lambda name: name == HEAD
    ),
    "norms old": stale_where(lambda name: "norm" in name),
    "biases old": stale_where(lambda name: name.endswith("bias")),
    "biases dropped": changed(_drop_biases),
    "one tensor-parallel half old": mixed(upper_half_old),
    "mean of old and new": mixed(lambda new, old: (new + old) / 2),
    "update with the wrong sign": mixed(lambda new, old: 2 * old - new),
    "update made twice": mixed(lambda new, old: 2 * new - old),
    "bfloat16 on the way": rounded(torch.bfloat16),
    "float16 on the way": rounded(torch.float16),
    "8 bits a weight": mixed(quantised),
    "vocabulary permuted": changed(_permute_vocabulary),
    "two tokens exchanged": changed(lambda weights: _permute_vocabulary(weights, (40, 41))),
    "head's rows moved by one": changed(lambda weights: weights.update({HEAD: weights[HEAD].roll(1, 0)})),
    "two layers exchanged": changed(_exchange_layers),
    "keys and values exchanged": changed(_exchange_names("k_proj", "v_proj")),
    "gate and up exchanged": changed(_exchange_names("gate_proj", "up_proj")),
    "heads in another order": changed(_permute_heads),
    "a tensor of zeros": changed(_fill("layers.2.mlp.up_proj.weight", 0.0)),
    "a norm of ones": changed(_fill("layers.1.input_layernorm.weight", 1.05)),
    "one number of a tensor wrong": changed(_fill("layers.2.self_attn.o_proj.weight", 4.0, 1)),
    "nan in one tensor": changed(_fill("layers.0.mlp.gate_proj.weight", float("nan"), 1)),
    "keys kept from the old weights": sampler(_keep_old_keys),
    "sampler in train mode, with dropout": sampler(_in_train_mode),
    "rotary base of another model": sampler(_rotary),
    "positions scaled": sampler(_positions_off),
    "epsilon of the norms": sampler(_norm_epsilon),
    "prompts cut from the left": sampler(_truncated),
    "bias on the end token": sampler(_biased),
    "log-probabilities without the temperature": sampler(_logprobs(_tempered(0))),
    "temperature applied twice": sampler(_logprobs(_tempered(2))),
    "log-probabilities among the tokens of top-p": sampler(_logprobs(_renormalised)),
    "logits in place of log-probabilities": sampler(_logprobs(lambda logits, token: logits[token] / TEMPERATURE)),
    "log-probabilities of the next place": sampler(_shifted_scores),
}
ADAPTERS: dict[str, Fault] = {
    "adapters stale": before(1),
    "adapters of the hand-over before last": before(2),
    "base model without the adapters": _add(0.0),
    "adapters merged twice": _add(2.0),
    "adapters with another alpha": _add(0.5),
    "adapters divided by the square root of the rank": _add(2.0**0.5),
    "adapters of the attention alone": _add(1.0, lambda name: "self_attn" in name),
    "adapters of one layer missing": _add(1.0, lambda name: ".layers.2." not in name),
    "adapters on other layers": _adapter(_add_to_other_layers),
    "adapters transposed where they fit": _adapter(_add_transposed),
}
