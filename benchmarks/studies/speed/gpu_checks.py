"""Checks of ``gpu.py``: what the device computes is what the CPU computes in float64, or in float32."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.agents.models.completion import Completion
from turngym.agents.models.kv_cache import Sessions
from turngym.agents.sampling import Sampling
from turngym.benchmarks.studies.speed.gpu_lease import Lease
from turngym.benchmarks.studies.speed.gpu_models import build_network, conversations, language_model, relative_gap
from turngym.envs.vector import make_vec
from turngym.trainers.algorithms import build
from turngym.trainers.core.rows import Read, Row, build_rows
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine import chunked_scores
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.checkpointing import checkpointed_layers, checkpointing
from turngym.trainers.engine.layouts import LAYOUTS, layout_of
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.scoring import score
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.settings.supervised import SupervisedConfig

_LIMITS = {torch.float32: 2e-4, torch.bfloat16: 6e-2}
"""Largest relative gap to float64 on the same weights."""
_TEMPERATURE = 0.9
_SMALL_CHUNK = 16
_ALL = 10**9


class _Arm(NamedTuple):
    """One way of computing scores and their gradients."""

    layout: str = "rows"
    is_checkpointed: bool = False
    chunk: int = _ALL

    @property
    def name(self) -> str:
        marks = ["checkpointed"] * self.is_checkpointed + ["head in chunks"] * (self.chunk < _ALL)
        return ", ".join([self.layout, *marks])


class _Found(NamedTuple):
    """What an arm computes."""

    logprobs: Tensor
    entropy: Tensor
    gradients: Tensor


def scores(lease: Lease) -> None:
    """Compare scores and gradients with float64 on the CPU: formats, layouts, checkpointing, head, adapters."""
    data = build_rows(conversations(8, 96, lease.checked_shape.words), with_final_prompts=False)
    arms = [_Arm(*each) for each in itertools.product(LAYOUTS, (False, True), (_ALL, _SMALL_CHUNK))]
    for has_adapters, dtype in itertools.product((False, True), _LIMITS):
        reference, tested = _twins(lease, dtype, has_adapters)
        wanted = _compute(reference, data, _Arm())
        chosen = [arm for arm in arms if arm.is_checkpointed and arm.chunk < _ALL] if has_adapters else arms
        for arm in chosen:
            name = f"{'adapters, ' * has_adapters}{str(dtype)[6:]}, {arm.name}"
            lease.attempt("scores", name, _comparison(lease, name, tested, data, arm, wanted, _LIMITS[dtype]))


def _comparison(
    lease: Lease, name: str, network: PreTrainedModel, data: Any, arm: _Arm, wanted: _Found, limit: float
) -> Callable[[], None]:
    def compare() -> None:
        found = _compute(network, data, arm)
        gaps = {part: relative_gap(getattr(found, part), getattr(wanted, part)) for part in _Found._fields}
        lease.add("scores", name, all(gap < limit for gap in gaps.values()), **gaps)

    return compare


def _twins(lease: Lease, dtype: torch.dtype, has_adapters: bool) -> tuple[PreTrainedModel, PreTrainedModel]:
    """Return a network in float64 on the CPU, and one with the same weights on the device."""
    base = build_network(lease.checked_shape, dtype)
    reference, tested = copy.deepcopy(base).double(), copy.deepcopy(base).to(lease.device)  # type: ignore[arg-type]
    if has_adapters:
        reference, tested = (add_adapters(language_model(each), 8, seed=1).network for each in (reference, tested))
        generator = torch.Generator().manual_seed(0)
        for one, other in zip(_trained(reference), _trained(tested), strict=True):
            one.data = torch.randn(one.shape, generator=generator).mul_(0.05).to(dtype).double()
            other.data = one.data.to(other)
        reference.double()
    return reference, tested


def _trained(network: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def _compute(network: PreTrainedModel, data: Any, arm: _Arm) -> _Found:
    network.zero_grad()
    layers = checkpointing(checkpointed_layers(network)) if arm.is_checkpointed else contextlib.nullcontext()
    with layers, mock.patch.object(chunked_scores, "chunk_size", lambda *_: arm.chunk):
        found = score(network, data, _TEMPERATURE, True, layout_of(arm.layout))
        assert found.entropy is not None
        weights = torch.linspace(-1, 1, found.logprobs.numel(), dtype=torch.float64, device=found.logprobs.device)
        loss = (found.logprobs.double().flatten() * weights).sum() / 7 + found.entropy.double().sum() / 11
        loss.backward()
    gradients = [each.grad.double().flatten() for each in _trained(network) if each.grad is not None]
    return _Found(found.logprobs.detach(), found.entropy.detach(), torch.cat(gradients))


def play(
    kept: Sessions, count: int, turns: int, sampling: Sampling, words: int, first: int, observed: int
) -> list[tuple[list[int], Completion]]:
    """Play conversations of random observations; returns each turn's prompt and completion.

    Args:
        kept: Caches of the network.
        count: Number of conversations.
        turns: Turns of each.
        sampling: Temperature, top-p, tokens a turn.
        words: Size of the vocabulary.
        first: Tokens of the first prompt.
        observed: Tokens of an observation.
    """
    rng, found = np.random.default_rng(0), []
    said = [rng.integers(1, words, first).tolist() for _ in range(count)]
    for _ in range(turns):
        completions = kept.complete(said, [rng.random(sampling.max_new_tokens) for _ in said], sampling)
        found += list(zip(said, completions, strict=True))
        said = [
            [*ids, *each.ids, *rng.integers(1, words, observed).tolist()]
            for ids, each in zip(said, completions, strict=True)
        ]
    return found


def sessions(lease: Lease) -> None:
    """Compare kept caches: tokens with those of the CPU in float32, log-probabilities with the trainer's."""
    words, budget = lease.checked_shape.words, 50_000
    for dtype, (temperature, top_p) in itertools.product(_LIMITS, ((1.0, 1.0), (0.7, 0.9), (0.0, 1.0))):
        sampling = Sampling(temperature, top_p, 12)
        base = build_network(lease.checked_shape, dtype)
        network = copy.deepcopy(base).to(lease.device)  # type: ignore[arg-type]
        found = play(Sessions(network, frozenset(), budget), 6, 3, sampling, words, 40, 24)
        name = f"{str(dtype)[6:]}, temperature {temperature}, top-p {top_p}"
        if dtype == torch.float32:
            wanted = play(Sessions(base, frozenset(), budget), 6, 3, sampling, words, 40, 24)
            equal = sum(one[1].ids == other[1].ids for one, other in zip(found, wanted, strict=True)) / len(found)
            lease.add("sessions", f"{name}: share of turns with the CPU's tokens", equal > 0.9, equal=equal)
        gap, mean = _gaps_to_trainer(network, found, temperature or 1.0)
        limit = 2e-3 if dtype == torch.float32 else 0.15
        lease.add("sessions", f"{name}: log-probabilities of the trainer", gap < limit, largest=gap, mean=mean)
    lease.attempt("sessions", "memory", lambda: _memory_of_caches(lease))


@torch.no_grad()
def _gaps_to_trainer(
    network: PreTrainedModel, turns: Sequence[tuple[list[int], Completion]], temperature: float
) -> tuple[float, float]:
    rows = [
        Row.of([*prompt, *each.ids], [Read(len(prompt) - 1 + i, token, i, 0, 0) for i, token in enumerate(each.ids)])
        for prompt, each in turns
    ]
    trained = score(network, rows, temperature).logprobs.double().cpu()
    gaps = (trained - torch.tensor([each.logprobs for _, each in turns], dtype=torch.float64)).abs()
    return float(gaps.max()), float(gaps.mean())


def _memory_of_caches(lease: Lease) -> None:
    """Check that dropped caches give their memory back."""
    if not lease.on_gpu:
        return
    network = build_network(lease.checked_shape, torch.bfloat16, lease.device)
    lease.forget_memory()
    before = torch.cuda.memory_allocated()
    kept = Sessions(network, frozenset(), 10**6)
    play(kept, 64, 2, Sampling(1.0, 1.0, 16), lease.checked_shape.words, 400, 24)
    during = torch.cuda.memory_allocated() - before
    kept.drop()
    del kept
    lease.forget_memory()
    after = torch.cuda.memory_allocated() - before
    lease.add("sessions", "memory of dropped caches", after < 0.02 * during, mib=during / 2**20, left_mib=after / 2**20)


_UPDATES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "grpo": ("grpo", 0, {}),
    "grpo, packed, checkpointed": ("grpo", 0, {"layout": "packed", "gradient_checkpointing": True}),
    "grpo, tree": ("grpo", 0, {"layout": "tree"}),
    "grpo, compiled": ("grpo", 0, {"layout": "packed", "compile": True}),
    "ppo": ("ppo", 0, {}),
    "grpo, adapters": ("grpo", 8, {"layout": "packed"}),
    "grpo, offload": ("grpo", 0, {"offload": True}),
    "grpo, the trainer's old log-probabilities": ("grpo", 0, {"old_logprobs": "trainer", "minibatches": 2}),
}
"""Name -> method, rank of its adapters, settings."""


def updates(lease: Lease) -> None:
    """Compare the weights after two updates with the CPU's."""
    data = conversations(8, 96, lease.checked_shape.words)
    base = build_network(lease.checked_shape)
    for name, (method, rank, settings) in _UPDATES.items():

        def compare(name: str = name, method: str = method, rank: int = rank, settings: Any = settings) -> None:
            changes = []
            for device in ("cpu", lease.device):
                learner = _learner(copy.deepcopy(base).to(device), method, rank, settings)  # type: ignore[arg-type]
                before = [each.detach().double().cpu() for each in _trained(learner.network)]
                for number in range(2):
                    learner.update(data, number)
                after = [each.detach().double().cpu() for each in _trained(learner.network)]
                changes.append(torch.cat([(b - a).flatten() for a, b in zip(before, after, strict=True)]))
            gap = relative_gap(changes[1], changes[0])
            lease.add("updates", name, gap < 2e-2 and bool(changes[0].any()), change=gap)

        lease.attempt("updates", name, compare)


def _learner(network: PreTrainedModel, method: str, rank: int, settings: dict[str, Any]) -> Learner:
    model = language_model(network)
    if rank:
        model = add_adapters(model, rank, seed=0)
    torch.manual_seed(0)
    config = UpdateConfig(learning_rate=1e-4, epsilon=1e-3, max_micro_batch_tokens=256, **settings)
    return Learner(model, build(method, {}), config, iterations=10)


def warm_up(lease: Lease) -> None:
    """Compare the loss of an epoch of demonstrations with the CPU's."""
    data = conversations(8, 96, lease.checked_shape.words)
    losses = []
    for device in ("cpu", lease.device):
        network = build_network(lease.checked_shape).to(device)  # type: ignore[arg-type]
        losses.append(SupervisedLearner(network, data, SupervisedConfig(epochs=1), 0).run_epoch())
    lease.add("warm-up", "loss of an epoch", abs(losses[1] / losses[0] - 1) < 1e-3, cpu=losses[0], device=losses[1])


def workers(lease: Lease) -> None:
    """Step environments in processes that start after the device is in use."""
    torch.zeros(1, device=lease.device)
    for backend in ("sync", "thread", "process"):

        def step(backend: Any = backend) -> None:
            vector = make_vec("turngym/FrozenLake-v0", 64, backend=backend)
            try:
                vector.reset(seed=0)
                seconds = lease.seconds_of(lambda: [vector.step(["<action>up</action>"] * 64) for _ in range(20)])
                lease.add("workers", backend, True, steps_a_second=20 * 64 / seconds, processors=os.cpu_count())
            finally:
                vector.close()

        lease.attempt("workers", backend, step)


def command(lease: Lease) -> None:
    """Run ``turngym train`` with warm-up, control and evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        words = [sys.executable, "-m", "turngym", "train", "--env", "turngym/FrozenLake-v0", "--run-dir", str(run)]
        words += ["--iterations", "1", "--max-seconds", "0", "--rollout.groups", "4", "--rollout.group-size", "4"]
        words += ["--warmup.demonstrations", "20", "--warmup.epochs", "2", "--evaluation.episodes", "4"]
        words += ["--evaluation.every", "0", "--env-options", "view=coordinates", "--device", lease.device]
        start = time.perf_counter()
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        limit = max(20.0, lease.left)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=limit, env=variables)
        has_control = (run / "control" / "summary.json").exists()
        last = (done.stderr or done.stdout).strip()[-400:] if done.returncode else None
        seconds = time.perf_counter() - start
        lease.add("command", "train, with control", not done.returncode and has_control, seconds=seconds, last=last)
