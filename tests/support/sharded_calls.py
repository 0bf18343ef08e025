"""What each rank does in the test of sharded models: it trains sharded and in one process, and prints the gaps as JSON."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from algorithm_batches import VARIANTS, made
from layout_batches import exact_norms, token_episodes, wide_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.engine.ranks.sharded import Sharded
from turngym.trainers.engine.ranks.sharding import gathered

CONFIG: Mapping[str, Any] = {"learning_rate": 1e-2, "max_grad_norm": 0.5, "max_micro_batch_tokens": 100}


def learner_of(model: LanguageModel, method: Algorithm[Any], ranks: Ranks | None, **settings: Any) -> Learner:
    """A learner on a model of its own, sharded if ranks are given."""
    own = model.with_network(copy.deepcopy(model.network))
    torch.manual_seed(0)
    found = Learner(
        own, method, UpdateConfig(**{**CONFIG, **settings}), spread=None if ranks is None else Sharded(ranks)
    )
    for module in method.modules().values():
        module.to(torch.promote_types(model.network.dtype, torch.float32))
    return found


def gradients(learner: Learner) -> list[Tensor]:
    """What the last update applied."""
    parameters = [*learner._policy_masters, *learner._other_masters]
    return [torch.zeros(p.shape) if p.grad is None else gathered(p.grad) for p in parameters]


def weights(learner: Learner) -> list[Tensor]:
    """The trained weights."""
    return [gathered(p.detach()) for p in [*learner._policy_masters, *learner._other_masters]]


def gap(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest difference of two lists of tensors, relative to the largest number."""
    size = max(float(each.abs().max()) for each in expected)
    differences = [float((a.double() - b.double()).abs().max()) for a, b in zip(found, expected, strict=True)]
    return max(differences) / max(size, 1e-9)


def compared(
    model: LanguageModel, episodes: list[Trajectory], variant: str, ranks: Ranks, updates: int = 1, **settings: Any
) -> dict[str, Any]:
    """Gradients of the first update, weights after several, and metrics, sharded against one process."""
    one, many = (learner_of(model, made(variant), each, **settings) for each in (None, ranks))
    expected, found = one.update(episodes, 0), many.update(episodes, 0)
    result = {"gradients": gap(gradients(many), gradients(one)), "norm": expected["train/grad_norm"]}
    metrics = {name: abs(found[name] - value) / max(abs(value), 1.0) for name, value in expected.items()}
    for iteration in range(1, updates):
        one.update(episodes, iteration)
        many.update(episodes, iteration)
    worst = max(metrics, key=lambda name: metrics[name])
    published = gap(*([p.detach() for p in each.model.network.parameters()] for each in (many, one)))
    return {
        **result,
        "weights": gap(weights(many), weights(one)),
        "published": published,
        "metric": [worst, metrics[worst]],
        "names": sorted(found) == sorted(expected),
    }


def methods(ranks: Ranks, kind: torch.dtype) -> dict[str, Any]:
    """Every registered method."""
    model = wide_model()
    model.network.to(kind)
    episodes = token_episodes(model)
    return {name: compared(model, episodes, name, ranks) for name in VARIANTS}


CALLS: dict[str, Callable[[Ranks], Any]] = {
    "float64": lambda ranks: methods(ranks, torch.float64),
    "float32": lambda ranks: methods(ranks, torch.float32),
}


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    with launched("cpu") as ranks, pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        print(json.dumps({name: CALLS[name](ranks) for name in names}))


if __name__ == "__main__":
    main(sys.argv[1:])
