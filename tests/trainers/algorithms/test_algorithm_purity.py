"""Credit and loss keep nothing of a batch: two batches interleaved give bit for bit what they give apart."""

from typing import Any

import pytest
import torch
from algorithm_batches import EVERY, Batch, batch_of, episodes, made
from torch import Tensor, nn

from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, LossInputs
from turngym.trainers.core.columns import Texts

torch.set_num_threads(1)


def learnt(algorithm: Algorithm[Any]) -> Algorithm[Any]:
    """The algorithm after one whole iteration, so that every state it has is filled."""
    trajectories = episodes(5)
    algorithm.update_state(trajectories, batch_of(algorithm, trajectories).credit)
    algorithm.observe({})
    return algorithm


def bits(value: Any) -> Any:
    """A value in which equal bits are equal: nan too."""
    if isinstance(value, Tensor):
        return value.detach().numpy().tobytes(), tuple(value.shape), value.dtype
    if isinstance(value, Texts):
        return value.tolist(), tuple(value.index.shape)
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    return value


def credited(batch: Batch) -> Any:
    credit = batch.credit
    return bits({**vars(credit), "columns": dict(credit.columns), "metrics": dict(credit.metrics), "state": None})


def lost(algorithm: Algorithm[Any], batch: Batch) -> Any:
    """Everything that a loss returns for two micro-batches, and the gradients of every network and column."""
    rows = batch.by_turn()
    found: dict[str, Any] = {}
    leaves = [*batch.leaves.values(), *(p for module in algorithm.modules().values() for p in module.parameters())]
    for number, part in enumerate((rows[::2], rows[1::2])):
        inputs: LossInputs = batch.inputs(part)
        output = algorithm.loss(inputs)
        for kind in ("terms", "metrics", "probes"):
            for name, term in getattr(output, kind).items():
                found[f"{number} {kind} {name}"] = bits(term.values)
        loss = output.total(inputs)
        trained = [leaf for leaf in leaves if leaf.requires_grad]
        gradients = torch.autograd.grad(loss, trained, allow_unused=True)
        found[f"{number} gradients"] = [None if each is None else bits(each) for each in gradients]
    return found


@EVERY
def test_two_batches_interleaved_give_bit_for_bit_what_they_give_apart(variant: str) -> None:
    """And leave the algorithm as it was."""
    first, second = episodes(), episodes(9)
    expected = []
    for trajectories in (first, second):
        algorithm = learnt(made(variant))
        batch = batch_of(algorithm, trajectories)
        expected.append((credited(batch), lost(algorithm, batch)))
    algorithm = learnt(made(variant))
    before = kept(algorithm)
    a = batch_of(algorithm, first)
    b = batch_of(algorithm, second)
    loss_b, loss_a = lost(algorithm, b), lost(algorithm, a)
    assert [(credited(a), loss_a), (credited(b), loss_b)] == expected
    assert kept(algorithm) == before


def kept(algorithm: Algorithm[Any]) -> dict[str, Any]:
    """Everything that an algorithm and the methods inside of it hold, networks by their weights."""
    found: dict[str, Any] = {}
    for name, value in vars(algorithm).items():
        if isinstance(value, Algorithm):
            found[name] = kept(value)
        elif isinstance(value, nn.Module):
            found[name] = bits(dict(value.state_dict()))
        else:
            found[name] = repr(value)
    return found


@EVERY
def test_collecting_leaves_the_algorithm_as_it_was(variant: str) -> None:
    algorithm = learnt(made(variant))
    before = kept(algorithm)

    def rollout(greedy: bool = False, branches: Any = None, mixture: float = 0.0, notes: Any = None) -> Any:
        return episodes(count=0 if branches is not None else 12)

    algorithm.collect(rollout)
    assert kept(algorithm) == before


@pytest.mark.parametrize("variant", ["rae", "mappo", "archer", "replay"])
def test_what_a_method_remembers_of_a_batch_it_takes_from_the_credit(variant: str) -> None:
    """The state after two batches depends on the order of ``update_state`` alone, not on that of the credits."""
    states = []
    for swapped in (False, True):
        algorithm = made(variant)
        batches = [episodes(), episodes(9)]
        credits = {k: batch_of(algorithm, batches[k]).credit for k in ((1, 0) if swapped else (0, 1))}
        for k in (0, 1):
            algorithm.update_state(batches[k], credits[k])
        states.append(algorithm.state())
    assert states[0] == states[1]
    inner = algorithm.base if isinstance(algorithm, Modifier) else algorithm
    assert states[0] != type(inner)(inner.config).state() or variant == "replay"
