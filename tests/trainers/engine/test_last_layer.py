"""The last layer computes only where it is read: the same numbers and gradients from less work."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from layout_batches import awkward_rows, exact_norms, wide_model
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.core.rows import Row
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.head import head_of
from turngym.trainers.engine.layouts import LAYOUTS, last_layer, layout_of
from turngym.trainers.engine.scoring import Critic, score


@pytest.fixture(scope="module", autouse=True)
def _exact() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        yield


def few_read() -> list[Row]:
    """Sequences that are each read at three tokens."""
    return [Row(each.ids, each.reads[:3], each.pictures) for each in awkward_rows()]


def outputs(model: LanguageModel, name: str) -> tuple[list[Tensor], int]:
    """Log-probabilities, entropies and gradients, and the operations that they take."""
    network: Any = model.network
    network.zero_grad()
    with FlopCounterMode(display=False) as counter:
        found = score(network, few_read(), 0.7, with_entropy=True, layout=layout_of(name))
        assert found.entropy is not None
        (found.logprobs.sin().sum() + found.entropy.cos().sum()).backward()
    gradients = [p.grad.clone() for p in network.parameters() if p.grad is not None]
    return [found.logprobs.detach(), found.entropy.detach(), *gradients], counter.get_total_flops()


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("rank", [0, 2])
def test_numbers_and_gradients_are_those_of_whole_layers(name: str, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = add_adapters(wide_model(), rank, 0) if rank else wide_model()
    head_of(model.network)  # compared once, with passes of its own
    found, less = outputs(model, name)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.network.modules())
    with checkpointing(checkpointed_layers(model.network)):
        again, _ = outputs(model, name)
    monkeypatch.setattr(last_layer, "_MOST", 0.0)
    whole, more = outputs(model, name)
    assert less < more
    for a, b, c in zip(found, again, whole, strict=True):
        torch.testing.assert_close(a, c, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(b, c, atol=1e-9, rtol=1e-9)


def test_values_and_their_gradients_are_those_of_whole_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    critic = Critic(wide_model().network)
    torch.nn.init.normal_(critic.head.weight, generator=torch.Generator().manual_seed(0))
    found = []
    for most in (0.8, 0.0):
        monkeypatch.setattr(last_layer, "_MOST", most)
        critic.zero_grad()
        values = critic(few_read())
        values.sin().sum().backward()
        found.append([values.detach(), *(p.grad.clone() for p in critic.parameters() if p.grad is not None)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-9)
