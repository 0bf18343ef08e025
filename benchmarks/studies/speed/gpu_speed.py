"""Measurements of ``gpu.py``: ceilings of the device, sampled and trained tokens a second."""

from __future__ import annotations

import statistics
from typing import Any

import torch

from turngym.agents.models.kv_cache import Sessions
from turngym.agents.models.sampler import automatic_budget
from turngym.agents.sampling import Sampling
from turngym.benchmarks.studies.speed.gpu_checks import play
from turngym.benchmarks.studies.speed.gpu_lease import Lease
from turngym.benchmarks.studies.speed.gpu_models import build_network, conversations, language_model
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner

_PRODUCT = 8192
_ROLLOUTS = ((64, 3, 32), (64, 4, 0), (128, 3, 32), (256, 2, 64))
"""Conversations, turns, and tokens a turn, 0 for those of the options."""
_UPDATES: dict[str, dict[str, Any]] = {
    "packed": {"layout": "packed"},
    "packed, compiled": {"layout": "packed", "compile": True},
    "packed, checkpointed, compiled": {"layout": "packed", "gradient_checkpointing": True, "compile": True},
    "packed, checkpointed": {"layout": "packed", "gradient_checkpointing": True},
    "rows": {"layout": "rows"},
    "tree, checkpointed": {"layout": "tree", "gradient_checkpointing": True},
}


def ceilings(lease: Lease) -> None:
    """Measure a copy within the device's memory, and a large product in bfloat16."""
    if not lease.on_gpu:
        lease.add("ceilings", "none on a CPU")
        return
    source = torch.empty(2**30, dtype=torch.uint8, device=lease.device)
    target = torch.empty_like(source)
    one, other = (torch.randn(_PRODUCT, _PRODUCT, device=lease.device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        target.copy_(source)
        one @ other
    copied = statistics.median(lease.seconds_of(lambda: target.copy_(source)) for _ in range(10))
    multiplied = statistics.median(lease.seconds_of(lambda: one @ other) for _ in range(10))
    lease.peak_operations = 2 * _PRODUCT**3 / multiplied
    lease.add("ceilings", "copy, bytes read and written", gb_a_second=2 * 2**30 / 1e9 / copied)
    lease.add("ceilings", "bfloat16 product", tflop_a_second=lease.peak_operations / 1e12)


def rollouts(lease: Lease) -> None:
    """Measure conversations whose caches are kept; the first turn's prompt has 256 tokens, an observation 64."""
    network = build_network(lease.shape, torch.bfloat16, lease.device).requires_grad_(False)
    budget = automatic_budget(network) if lease.on_gpu else 10**6
    play(Sessions(network, frozenset(), budget), 8, 1, Sampling(1.0, 1.0, 4), lease.shape.words, 16, 4)
    for count, turns, given in _ROLLOUTS:
        new = given or lease.options.new_tokens
        lease.forget_memory()
        kept = Sessions(network, frozenset(), budget)
        sampling, words = Sampling(1.0, 1.0, new), lease.shape.words
        seconds = lease.seconds_of(lambda: play(kept, count, turns, sampling, words, 256, 64))  # noqa: B023
        figures: dict[str, Any] = {
            "tokens_a_second": count * turns * new / seconds,
            "ms_a_step": 1e3 * seconds / (turns * new),
        }
        figures |= {"prefilled": kept.counts.prefilled, "reused": kept.counts.reused}
        name = f"{count} conversations, {turns} turns, {new} tokens a turn"
        lease.add("rollout", name, **figures, memory_gib=lease.memory())
        kept.drop()
        if lease.left < 30:
            return


def update_arms(lease: Lease) -> None:
    """Measure updates of all weights in bfloat16 with masters in float32, by layout and checkpointing."""
    for name, settings in _UPDATES.items():
        if lease.left < 30:
            lease.add("update", f"{name}: skipped, no time")
            continue
        lease.attempt("update", name, lambda name=name, settings=settings: _update(lease, name, settings))  # type: ignore[misc]


def _update(lease: Lease, name: str, settings: dict[str, Any]) -> None:
    options, shape = lease.options, lease.shape
    lease.forget_memory()
    data = conversations(options.rows, options.length, shape.words)
    tokens = sum(len(t.turns[-1].prompt_ids) + len(t.turns[-1].completion_ids) for t in data)
    config = UpdateConfig(learning_rate=1e-6, max_micro_batch_tokens=options.micro_batch, **settings)
    model = language_model(build_network(shape, torch.bfloat16, lease.device))
    learner = Learner(model, build("grpo", {"grpo": {"kl_coef": 0.0}}), config)
    first = lease.seconds_of(lambda: learner.update(data, 0))
    seconds = lease.seconds_of(lambda: [learner.update(data, 1 + number) for number in range(options.updates)])
    speed = options.updates * tokens / seconds
    peak = lease.peak_operations
    share = speed * shape.operations(options.length, 0.5) / peak if peak else None
    figures = {"tokens_a_second": speed, "share_of_peak": share, "memory_gib": lease.memory()}
    lease.add("update", name, **figures, first_update_seconds=first)
