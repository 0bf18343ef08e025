"""What each rank does in the test of sharded models: it trains sharded and in one process, and prints the gaps."""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from algorithm_batches import VARIANTS, made
from layout_batches import exact_norms, token_episodes, wide_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel, set_format
from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.core.algorithm import Algorithm
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.engine.ranks.sharded import Sharded
from turngym.trainers.engine.ranks.sharding import gathered

CONFIG: Mapping[str, Any] = {"learning_rate": 1e-2, "max_grad_norm": 0.5, "max_micro_batch_tokens": 200}


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
    """Every registered method, and one whose probes always count."""
    model, episodes = model_and_episodes(kind)
    VARIANTS["s_ppo"] = ("s_ppo", {"s_ppo": {"trigger": 0.0}})
    return {name: compared(model, episodes, name, ranks) for name in ALGORITHMS}


def model_and_episodes(kind: torch.dtype = torch.float32) -> tuple[LanguageModel, list[Trajectory]]:
    """A model and episodes that it could have played."""
    model = wide_model()
    episodes = token_episodes(model)
    set_format(model.network, kind)
    return model, episodes


def ways(ranks: Ranks) -> dict[str, Any]:
    """Layouts, checkpointed layers, several updates, adapters and weights of 16 bits."""
    model, episodes = model_and_episodes()
    adapted = with_adapters(model)
    short, _ = model_and_episodes(torch.bfloat16)
    short_adapted = with_adapters(model_and_episodes(torch.bfloat16)[0])
    few = {"max_micro_batch_tokens": 60}
    return {
        "packed": compared(model, episodes, "ppo", ranks, layout="packed"),
        "tree": compared(model, episodes, "ppo", ranks, layout="tree"),
        "checkpointed": compared(model, episodes, "st_ppo", ranks, gradient_checkpointing=True),
        "many micro-batches": compared(model, episodes, "ppo", ranks, **few),
        "trainer's log-probabilities": compared(model, episodes, "grpo", ranks, old_logprobs="trainer"),
        "fewer sequences than ranks": compared(model, one_sequence(episodes), "ppo", ranks),
        "minibatches": compared(model, episodes, "ppo", ranks, updates=3, epochs=2, minibatches=2),
        "adapters": compared(adapted, episodes, "grpo nested, with divergence and entropy", ranks, updates=3),
        "adapters and critic": compared(adapted, episodes, "ppo", ranks, updates=2),
        "16 bits": compared(short, episodes, "reinforce", ranks, updates=3),
        "adapters on 16 bits": compared(short_adapted, episodes, "reinforce", ranks, updates=3),
    }


def with_adapters(model: LanguageModel) -> LanguageModel:
    """The model with adapters that do something."""
    adapted = add_adapters(model.with_network(copy.deepcopy(model.network)), 4, 0)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in adapted.network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1, generator=generator)
    return adapted


def one_sequence(episodes: list[Trajectory]) -> list[Trajectory]:
    """An episode of one turn with tokens, so that one rank has nothing but passes that other ranks wait for."""
    found = next(each for each in episodes if any(turn.completion_ids for turn in each.turns))
    turn = next(turn for turn in found.turns if turn.completion_ids)
    return [replace(found, turns=[turn])]


CALLS: dict[str, Callable[[Ranks], Any]] = {
    "float64": lambda ranks: methods(ranks, torch.float64),
    "float32": lambda ranks: methods(ranks, torch.float32),
    "ways": ways,
}


def main(names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    with launched("cpu") as ranks, pytest.MonkeyPatch.context() as patch:
        exact_norms(patch)
        found = {}
        for name in names:
            start = time.process_time()
            found[name] = CALLS[name](ranks)
            found[f"seconds {name}"] = time.process_time() - start
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
